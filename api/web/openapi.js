'use strict';
// Operations come first: the text about all of them is below them.
const operationsFirst = ({ React }) => ({
  statePlugins: { spec: { wrapSelectors: { selectInfoDescriptionField: () => () => '' } } },
  wrapComponents: {
    operations: (Operations, { getComponent, specSelectors }) => (props) => React.createElement(React.Fragment, null,
      React.createElement(Operations, props),
      React.createElement('section', { id: 'about', className: 'info' },
        React.createElement('h2', null, 'About every operation'),
        React.createElement(getComponent('Markdown', true), { source: specSelectors.info().get('description') }))),
  },
});
// Every field of the dialog takes the focus as it appears, so the last one would have it. Nearly
// every operation wants the first: the bearer.
const bearerFirst = ({ React }) => ({
  wrapComponents: {
    authorizationPopup: (Popup) => (props) => {
      React.useEffect(() => {
        const field = document.getElementById('auth-bearer-value');
        field?.closest('.modal-ux-content')?.scrollTo(0, 0);
        field?.focus({ preventScroll: true });
      }, []);
      return React.createElement(Popup, props);
    },
  },
});
// Swagger UI has dark colours for this class. It sets the class itself only after a click.
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
// Nothing that is typed into the viewer is kept when the page is left.
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#viewer',
  plugins: [operationsFirst, bearerFirst],
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  validatorUrl: null,
  supportedSubmitMethods: ['get', 'post', 'put', 'patch', 'delete'],
});

'use strict';
const sans = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const mono = 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
// Redoc has light colours. These are its dark ones.
const night = {
  colors: {
    primary: { main: '#5fd0ae' },
    text: { primary: '#e9ece9', secondary: '#a3aba7' },
    border: { dark: '#434a47', light: '#313735' },
    gray: { 50: '#1c201f', 100: '#1c201f' },
    responses: {
      success: { color: '#5fd0ae', backgroundColor: '#16302a', tabTextColor: '#5fd0ae' },
      error: { color: '#ff8f8a', backgroundColor: '#3a1d1e', tabTextColor: '#ff8f8a' },
      redirect: { color: '#e5b454', backgroundColor: '#33290f', tabTextColor: '#e5b454' },
      info: { color: '#8fc7ff', backgroundColor: '#14293d', tabTextColor: '#8fc7ff' },
    },
  },
  sidebar: { backgroundColor: '#1c201f', textColor: '#e9ece9' },
  schema: { nestedBackground: '#1c201f', typeNameColor: '#a3aba7', typeTitleColor: '#a3aba7', requireLabelColor: '#ff8f8a' },
  rightPanel: { backgroundColor: '#101212' },
  codeBlock: { backgroundColor: '#1c201f' },
};
const scheme = matchMedia('(prefers-color-scheme: dark)');
const show = () => Redoc.init('/v1/openapi.json', {
  disableSearch: true, // its index is built in a worker made of a blob, which the page's policy refuses
  hideDownloadButton: true,
  nativeScrollbars: true,
  scrollYOffset: '.bar',
  showExtensions: ['x-problem-codes'],
  theme: {
    ...(scheme.matches && night),
    typography: {
      fontFamily: sans,
      headings: { fontFamily: sans, fontWeight: '600' },
      code: { fontFamily: mono, ...(scheme.matches && { color: '#ffb3a7', backgroundColor: '#1c201f' }) },
    },
  },
}, document.getElementById('viewer'));
scheme.addEventListener('change', show);
show();

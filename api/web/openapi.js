'use strict';
// Nothing that is typed into the viewer is kept when the page is left.
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#viewer',
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  validatorUrl: null,
  supportedSubmitMethods: ['get', 'post', 'patch', 'delete'],
});

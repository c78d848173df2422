'use strict';
const sans = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const mono = 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace';
Redoc.init('/v1/openapi.json', {
  disableSearch: true, // its index is built in a worker made of a blob, which the page's policy refuses
  hideDownloadButton: true,
  nativeScrollbars: true,
  scrollYOffset: '.bar',
  showExtensions: ['x-problem-codes'],
  theme: {
    typography: {
      fontFamily: sans,
      headings: { fontFamily: sans, fontWeight: '600' },
      code: { fontFamily: mono },
    },
  },
}, document.getElementById('viewer'));

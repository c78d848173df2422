// Reads one JSON string a line and answers how node's own parsers read it: one
// JSON array a line of [reader, scheme, host, port, path].
//
// A path is as it would be sent. What is no URL has an empty scheme and host; a
// path on Windows has the scheme "windows" and is in lower case with slashes; an
// address has the scheme "mailto", "sms" or "tel" and is its path. An empty line
// has no answer.
'use strict';
const path = require('node:path');
const readline = require('node:readline');
const url = require('node:url');

const out = [];
const attempt = (f) => { try { f(); } catch { /* the parser refuses the text: it reads nothing */ } };
const bare = (scheme) => (scheme || '').replace(/:$/, '').toLowerCase();

// browser is the WHATWG parser: what a browser, fetch and undici act on.
function browser(text) {
  const u = new URL(text);
  out.push(['node.URL', bare(u.protocol), u.hostname, u.port, u.pathname]);
  if (u.protocol === 'file:') {
    attempt(() => out.push(['node.fileURLToPath', '', '', '', path.posix.normalize(url.fileURLToPath(u, { windows: false }))]));
    attempt(() => windows('node.fileURLToPath.windows', url.fileURLToPath(u, { windows: true })));
  }
  if (['mailto:', 'sms:', 'tel:'].includes(u.protocol)) addresses(u);
}

// addresses lists the recipients of a mailto: by RFC 6068, of sms: and tel:.
function addresses(u) {
  const lists = [decodeURIComponent(u.pathname)];
  for (const [key, value] of u.searchParams) {
    if (u.protocol === 'mailto:' && ['to', 'cc', 'bcc'].includes(key.toLowerCase())) lists.push(value);
  }
  for (const list of lists) {
    for (const a of list.split(/[,;]/)) out.push(['node.addresses', bare(u.protocol), '', '', a.trim().toLowerCase()]);
  }
}

// legacy is url.parse, which http.request uses for strings in much old code.
function legacy(text) {
  const u = url.parse(text);
  if (u.protocol && u.host && u.slashes) out.push(['node.url.parse', bare(u.protocol), u.hostname || '', u.port || '', u.pathname || '/']);
}

function windows(reader, text) {
  out.push([reader, 'windows', '', '', path.win32.normalize(text).toLowerCase().replaceAll('\\', '/')]);
}

function paths(text) {
  if (text.includes('://') || /^(mailto|sms|tel):/i.test(text)) return;
  out.push(['node.posix', '', '', '', path.posix.normalize(text)]);
  if (/\\|^\/\/|^[a-z]:\//i.test(text)) windows('node.win32', text);
}

process.noDeprecation = true;
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === '') return;
  out.length = 0;
  const text = JSON.parse(line);
  attempt(() => browser(text));
  attempt(() => legacy(text));
  attempt(() => paths(text));
  process.stdout.write(JSON.stringify(out) + '\n');
});

// Reads one JSON string a line and answers to whom nodemailer sends a message
// with this text as its To: one JSON array a line of [reader, address].
//
// The first line that it writes lists the versions it asks. An empty line has no
// answer. NODE_PATH says where they are installed.
'use strict';
const readline = require('node:readline');

const mailers = [];
for (const name of ['nodemailer', 'nodemailer-7.0.6']) {
  try {
    mailers.push([name, require(`${name}/lib/mime-node`)]);
  } catch { /* not installed: the test says so */ }
}
console.log(JSON.stringify(mailers.map(([name]) => name)));

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === '') return;
  const out = [];
  for (const [name, MimeNode] of mailers) {
    try {
      for (const to of new MimeNode().setHeader('To', JSON.parse(line)).getEnvelope().to) out.push([name, to]);
    } catch { /* it refuses the text: it sends nothing */ }
  }
  console.log(JSON.stringify(out));
});

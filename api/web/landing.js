'use strict';
// The request as it stands on the page works elsewhere; these make it this
// server's, with an intent of its own. Without JavaScript it is an example.
document.getElementById('base').textContent = location.origin;
document.getElementById('now').textContent = new Date().toISOString().slice(0, 19) + 'Z';
const bytes = crypto.getRandomValues(new Uint8Array(16));
bytes[6] = bytes[6] & 0x0f | 0x40;
bytes[8] = bytes[8] & 0x3f | 0x80;
const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
document.getElementById('intent').textContent =
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');

// The clipboard is there in secure contexts only: https and localhost.
if (navigator.clipboard) {
  const button = document.getElementById('copy');
  const said = document.getElementById('copied');
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(document.getElementById('request').textContent);
      said.textContent = 'Copied.';
    } catch {
      said.textContent = 'The browser did not allow copying; select the text instead.';
    }
  });
}

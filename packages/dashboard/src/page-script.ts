/**
 * The page's only script: asks for its main part again and puts it in place of the old one. Parsed as a document, nothing
 * in an answer can run.
 */
export const PAGE_SCRIPT = `
'use strict';
const lost = () => document.body.classList.add('lost');
const load = () => {
  if (document.hidden) return;
  const request = new XMLHttpRequest();
  request.open('GET', '/main');
  request.responseType = 'document';
  request.timeout = 10000;
  request.onerror = request.ontimeout = lost;
  request.onload = () => {
    const next = request.status === 200 && request.response ? request.response.querySelector('main') : null;
    if (next === null) return lost();
    document.body.classList.remove('lost');
    document.querySelector('main').replaceWith(next);
  };
  request.send();
};
setInterval(load, Number(document.documentElement.dataset.every) * 1000);
document.addEventListener('visibilitychange', load);
`;

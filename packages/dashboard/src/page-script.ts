/**
 * The only script of the page: it reloads the main part and replaces the old one. The answer is parsed as a document,
 * so no script in it runs.
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

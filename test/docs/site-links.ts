import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

export interface Link {
  /** The page with the link, from the folder of the site. */
  readonly page: string;
  readonly target: string;
}

const PAGE = /\.html$/;

/** Everything that the pages of a site load or link to. */
function linksOf(site: string): readonly Link[] {
  return pagesOf(site).flatMap((page) =>
    [...readFileSync(join(site, page), 'utf8').matchAll(/\s(?:href|src)="([^"]*)"/g)].map(({ 1: target = '' }) => ({
      page,
      target: target.replaceAll('&amp;', '&'),
    })),
  );
}

function pagesOf(site: string): readonly string[] {
  return readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((file) => PAGE.test(file));
}

/** Links within the site whose file or heading is not there. */
export function brokenLinks(site: string): readonly Link[] {
  const idsOf = new Map<string, ReadonlySet<string>>();
  const ids = (file: string): ReadonlySet<string> => {
    let found = idsOf.get(file);
    if (found === undefined) {
      found = new Set([...readFileSync(file, 'utf8').matchAll(/\sid="([^"]*)"/g)].map(({ 1: id = '' }) => id));
      idsOf.set(file, found);
    }
    return found;
  };
  return linksOf(site).filter(({ page, target }) => {
    if (/^[a-z][a-z0-9+.-]*:/i.test(target) || target === '#') return false;
    const [path = '', anchor = ''] = target.split('#');
    const file =
      path === '' ? join(site, page) : resolve(join(site, dirname(page)), decodeURI(path.split('?')[0] ?? ''));
    if (relative(site, file).startsWith('..') || !existsSync(file)) return true;
    return anchor !== '' && PAGE.test(file) && !ids(file).has(decodeURIComponent(anchor));
  });
}

/** Resources that the pages would load from another host, and their style sheets and scripts. Links do not count. */
export function foreignRequests(site: string): readonly Link[] {
  const LOADS = /<(?:script|img|iframe|source|video|audio|use|link)\b[^>]*?\s(?:href|src)="((?:https?:)?\/\/[^"]*)"/g;
  const STYLE = /(?:@import\s+|url\()["']?((?:https?:)?\/\/[^"')\s]*)/g;
  const SCRIPT = /\b(?:fetch|import|importScripts|WebSocket|EventSource)\(["'`]((?:https?:|wss?:)?\/\/[^"'`]*)/g;
  return readdirSync(site, { recursive: true, encoding: 'utf8' }).flatMap((page) => {
    const expressions = PAGE.test(page)
      ? [LOADS, STYLE, SCRIPT]
      : page.endsWith('.css')
        ? [STYLE]
        : page.endsWith('.js')
          ? [SCRIPT]
          : [];
    const text = expressions.length === 0 ? '' : readFileSync(join(site, page), 'utf8');
    return expressions.flatMap((each) => [...text.matchAll(each)].map(({ 1: target = '' }) => ({ page, target })));
  });
}

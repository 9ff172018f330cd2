import { request } from 'node:http';

export interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Requests the page at this address, without fetch, which does not allow another Host header. */
export function ask(
  page: string,
  { method = 'GET', path = '/', host = new URL(page).host }: { method?: string; path?: string; host?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request({ port: new URL(page).port, host: '127.0.0.1', method, path, headers: { host } }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
    })
      .on('error', reject)
      .end();
  });
}

/** Requests the page until it shows the text. */
export async function shows(page: string, what: RegExp): Promise<string> {
  const until = Date.now() + 20_000;
  for (;;) {
    const { body } = await ask(page);
    if (what.test(body)) return body;
    if (Date.now() > until) throw new Error(`the page never showed ${what}:\n${body}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

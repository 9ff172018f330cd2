import { optionRangeError } from '../base/options.ts';
import { urlWith } from './options.ts';

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])$/;

/**
 * Reads the address of a service: an `https://` URL, or an `http://` URL of this machine. Its text is in no message,
 * because it may hold a password.
 *
 * @param mayBeHttp - Whether `http://` is accepted for other machines too: the option `dangerouslyAllowHttp`.
 * @throws {TypeError | RangeError}
 */
export function endpointUrl(owner: string, name: string, value: unknown, mayBeHttp: boolean): URL {
  const url = new URL(urlWith(owner, name, value, ['https:', 'http:'], 'an https:// URL'));
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw optionRangeError(`${owner}: ${name} must be a URL without user, password, query and fragment`);
  }
  if (url.protocol === 'http:' && !mayBeHttp && !LOOPBACK.test(url.hostname)) {
    throw optionRangeError(
      `${owner}: ${name} must be an https:// URL, except on this machine: http:// sends everything in plaintext ` +
        '(dangerouslyAllowHttp)',
    );
  }
  return url;
}

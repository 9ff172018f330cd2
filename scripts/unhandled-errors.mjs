import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './prepare.mjs';

/** Vitest fails a run for errors that belong to no test, and its JSON report does not contain them. */
export default class UnhandledErrors {
  onTestRunEnd(_modules, errors) {
    writeFileSync(process.env.SEALRING_UNHANDLED_ERRORS, JSON.stringify(errors.map(describe)));
  }
}

const describe = ({ type, name, message, stack, VITEST_TEST_PATH: path, VITEST_TEST_NAME: test }) => ({
  type: type ?? name ?? 'Error',
  text: stack ?? message ?? '',
  where: [path === undefined ? undefined : relative(root, path), test].filter(Boolean).join(' > '),
});

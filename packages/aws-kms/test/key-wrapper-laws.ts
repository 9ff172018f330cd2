// @boundaries-ignore what the tests of all packages share is no package
export { keyWrapperLaws } from '../../../test/support/key-wrapper-laws.ts';

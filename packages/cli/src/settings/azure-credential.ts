import { UsageError } from '../usage-error.ts';
import { loadPackage } from './adapter-packages.ts';

/** The default credential of `@azure/identity`. `why` names the setting that requires it. */
export async function azureCredential(why: string): Promise<unknown> {
  const module = await loadPackage('@azure/identity', why);
  const { DefaultAzureCredential } = module as { readonly DefaultAzureCredential?: new () => unknown };
  if (DefaultAzureCredential === undefined) {
    throw new UsageError(`${why}: the installed @azure/identity has no DefaultAzureCredential`);
  }
  return new DefaultAzureCredential();
}

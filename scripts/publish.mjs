import { npm, publishedPackages, withPublishedFolders } from './packages.mjs';
import { main } from './prepare.mjs';

// Publishes the packages that the registry does not have yet, each after its dependencies. Arguments go to `npm
// publish`. After a failure, run it again.

async function isPublished(registry, { name, version }) {
  const response = await fetch(new URL(name.replace('/', '%2f'), registry), {
    headers: { accept: 'application/vnd.npm.install-v1+json' },
  });
  if (response.status === 404) return false;
  if (!response.ok) throw new Error(`the registry answered ${response.status} for ${name}`);
  const { versions } = await response.json();
  return Object.hasOwn(versions, version);
}

await main(async () => {
  const registry = npm(['config', 'get', 'registry']).trim();
  for (const { folder, manifest } of publishedPackages()) {
    const title = `${manifest.name}@${manifest.version}`;
    if (await isPublished(registry, manifest)) {
      process.stdout.write(`${title} is there\n`);
      continue;
    }
    withPublishedFolders([folder], (published) =>
      npm(['publish', ...published, '--access=public', '--ignore-scripts', ...process.argv.slice(2)]),
    );
    process.stdout.write(`${title} was published\n`);
  }
  return 0;
});

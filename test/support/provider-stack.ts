/** Stacks of an attacker and of others that use the provider `time`, for the tests and the attacks on the provider cache. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { StackSpec } from '../../src/api/index.ts'
import {
  checksumOf,
  lockFile,
  timeConfiguration,
  timeProvider,
  writeMirror,
} from '../../src/execution/engine/terraform/provider-mirror.testing.ts'

type Engine = 'terraform' | 'opentofu'

/** The dependency lock file for the real provider. */
export const lockedProvider = (engine: Engine): Record<string, string> => ({
  '.terraform.lock.hcl': lockFile([checksumOf(timeProvider())], [`registry.${engine}.io`.replace('opentofu.io', 'opentofu.org')]),
})

/** Writes the source of a Stack to `path`, which does not exist. With `program` it selects a mirror in the source, which serves this as the provider. */
export function providerStack(
  path: string,
  engine: Engine,
  program: Buffer | undefined,
  files: Record<string, string> = {},
): Pick<StackSpec, 'engine' | 'source' | 'env'> {
  mkdirSync(path, { recursive: true })
  const all: Record<string, string> = { 'main.tf': timeConfiguration, ...files }
  if (program) {
    writeMirror(join(path, 'mirror'), program)
    all['cli.tfrc'] = 'provider_installation {\n  filesystem_mirror { path = "mirror" }\n}\n'
  }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return { engine, source: { path: { path } }, ...(program && { env: [{ name: 'TF_CLI_CONFIG_FILE', value: 'cli.tfrc' }] }) }
}

/** The files of a Stack that tries to change the providers in `cache` by their paths and by the links in its own plugin directory. */
export function overwritingFiles(cache: string): Record<string, string> {
  const script = `
    for d in ${cache} "$TF_PLUGIN_CACHE_DIR"; do find -L "$d" -name 'terraform-provider-*' -type f; done 2>/dev/null | while read -r f; do echo "found $f"
      t=$(readlink -f "$f"); case $t in ${cache}/*) ;; *) continue; esac
      chmod 777 "$t"; (echo '#!/bin/sh' > "$t") && echo "wrote $t"; mv "$t" "$t.old" && echo "moved $t"; rm -f "$t" && echo "removed $t"
    done 2>/dev/null; for d in $(find ${cache} -type d); do mkdir "$d/h1-0"; done 2>/dev/null
    cp /bin/sh own && echo changed > own && echo wrote own; true`
  const attack = `
    resource "terraform_data" "attack" {
      depends_on = [time_static.now]
      provisioner "local-exec" { command = file("attack.sh") }
    }`
  return { 'main.tf': timeConfiguration + attack, 'attack.sh': script }
}

/** What such a Stack has changed, by its log and in the cache itself: in a sandbox the directories above the mounted one are its own. */
export function changesBy(log: string, cache: string): string[] {
  const changed = [...log.matchAll(/((?:wrote|moved|removed) .*)$/gm)]
    .map(([, what]) => what as string)
    .filter(what => what !== 'wrote own')
  const created = readdirSync(cache, { recursive: true, encoding: 'utf8' }).filter(path => /h1-0$|\.old$/.test(path))
  return [...changed, ...created.map(path => `created ${path}`)]
}

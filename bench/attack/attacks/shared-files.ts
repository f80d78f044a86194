/** A sandboxed program that makes its worker read, write or wait where it should not, through files that both use. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { skipWithoutTerraformEngine, terraformEngine } from '../../../test/support/run-program.ts'
import { type Attack, NotRunHere } from '../attack.ts'
import type { Target } from '../target.ts'

const author = { actor: 'stack author', promise: 'Files of the worker' } as const

/** Everything the engine may write next to its source, by the names that the worker uses. */
const names = [
  'terraform.tfstate',
  'outputs.json',
  'apply.plan.json',
  'plan.tfplan',
  'approved.tfplan',
  'variables.json',
  'terraform.tfvars.json',
]

function adminToken(target: Target): { path: string; changes(): string[] } {
  const path = join(target.dataDir, 'pki', 'admin-token')
  const before = { text: readFileSync(path, 'utf8'), mode: statSync(path).mode, uid: statSync(path).uid }
  return {
    path,
    changes: () => {
      const { mode, uid } = statSync(path)
      const changes: string[] = []
      if (readFileSync(path, 'utf8') !== before.text) changes.push('overwrote the admin token')
      if (mode !== before.mode) changes.push('changed the mode of the admin token')
      if (uid !== before.uid) changes.push('changed the owner of the admin token')
      return changes
    },
  }
}

const symlinks: Attack = {
  name: 'files-symlinks',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const token = adminToken(target)
    const link = `d=$(dirname $OARLOCK_OUTPUTS); for n in ${names.join(' ')} $(basename $OARLOCK_OUTPUTS) $(basename $OARLOCK_STATE); do rm -rf "$d/$n"; ln -s ${token.path} "$d/$n"; ln -sf ${token.path} "$n"; done; ln -s ${token.path} $HOME/a $TMPDIR/b; [ -L $OARLOCK_STATE ] && echo linked`
    const results = [
      await target.runScript(link),
      await target.runScript('', {
        source: { inline: { files: { 'plan.sh': `${link}; exit 2`, 'apply.sh': link } } },
        command: { plan: ['sh', 'plan.sh'], apply: ['sh', 'apply.sh'] },
      }),
    ]
    control(
      results.every(({ log }) => log.includes('linked')),
      'the links are not made',
    )
    return [...new Set([...results.flatMap(({ text }) => target.secretsIn(text)), ...token.changes()])]
  },
}

const directories: Attack = {
  name: 'files-directories',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const token = adminToken(target)
    const pki = join(target.dataDir, 'pki')
    // A directory of the Run is replaced by a link to one of the operator: the worker reads there, or empties it when the Run ends.
    const { text } = await target.runScript(`
      d=$(dirname $OARLOCK_OUTPUTS); w=$(pwd); rm -rf "$d" "$w" "$HOME" "$TMPDIR" 2>/dev/null; cd /
      for each in "$d" "$w" "$HOME" "$TMPDIR"; do mv $each $each.old 2>/dev/null; ln -s ${pki} $each 2>/dev/null; ln -s ${pki} $each/pki 2>/dev/null; ln -s ${pki} $each/.terraform 2>/dev/null; done
      mkdir -p $d/sub/deep; chmod 0 $d/sub/deep; ln -s ${pki} $d/sub/pki; [ -L $d/sub/pki ] && echo linked`)
    control(text.includes('linked'), 'the links are not made')
    return [...target.secretsIn(text), ...token.changes()]
  },
}

const pipes: Attack = {
  name: 'files-pipes',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const { run } = await target.runScript('for f in $OARLOCK_OUTPUTS $OARLOCK_STATE; do rm -f $f; mkfifo $f; done', { timeout: '20s' })
    // Another Run shows that the worker still works.
    const { run: next } = await target.runScript('true')
    control(/not a regular file/.test(run?.status?.message ?? ''), `the Run with pipes ended with ${run?.status?.message}`)
    return run?.status?.finishedAt && next?.status?.phase === 'Succeeded' ? [] : ['the worker waits for a pipe']
  },
}

const hugeFiles: Attack = {
  name: 'files-huge',
  slow: true,
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const before = Date.now()
    const { run } = await target.runScript(
      'truncate -s 8E $OARLOCK_STATE 2>/dev/null || truncate -s 8T $OARLOCK_STATE; truncate -s 4T $OARLOCK_OUTPUTS; ln -s /dev/zero $HOME/zero; ln -s /dev/zero a.tf',
    )
    control(run?.status?.phase === 'Failed', `the Run with huge files ended with ${run?.status?.phase}`)
    return Date.now() - before > 30_000 ? ['the worker read for more than 30 s'] : []
  },
}

const race: Attack = {
  name: 'files-race',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    const token = adminToken(target)
    // The worker uploads each version of the state while the program runs: the file is exchanged for a link all the time.
    const { text, name } = await target.runScript(`
      d=$(dirname $OARLOCK_STATE); i=0; end=$(($(date +%s) + 8))
      while [ $(date +%s) -lt $end ]; do
        for k in 1 2 3 4 5 6 7 8; do i=$((i+1)); echo "{\\"serial\\":$i}" > $d/new; mv $d/new $OARLOCK_STATE; ln -s ${token.path} $d/link; mv $d/link $OARLOCK_STATE; done
      done; rm -f $OARLOCK_STATE; echo '{}' > $OARLOCK_STATE`)
    const versions = await target.send('GET', `/state/attacker/${name}/versions`, { token: target.authorToken })
    const numbers = [...versions.text.matchAll(/"version":(\d+)/g)].map(([, number]) => number)
    control(numbers.length > 1, `${numbers.length} versions of the state were stored`)
    const contents = await Promise.all(
      numbers.map(number => target.send('GET', `/state/attacker/${name}?version=${number}`, { token: target.authorToken })),
    )
    return [...new Set([text, ...contents.map(each => each.text)].flatMap(each => target.secretsIn(each)).concat(token.changes()))]
  },
}

const hardLinks: Attack = {
  name: 'files-hard-links',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const token = adminToken(target)
    const passwd = statSync('/etc/passwd')
    const { text } = await target.runScript(`
      echo a > own; ln own own2 && echo linked itself; ln ${token.path} $OARLOCK_OUTPUTS 2>/dev/null; ln /etc/passwd $HOME/passwd && echo x:: >> $HOME/passwd && echo linked
      ln /usr/bin/env $HOME/env 2>/dev/null && chmod 777 $HOME/env && echo linked; true`)
    control(/^linked itself$/m.test(text), 'it cannot make a hard link to its own file')
    const gained = [...target.secretsIn(text), ...token.changes()]
    if (/^linked$/m.test(text)) gained.push('a hard link to a file outside of the Run')
    const { mtimeMs, mode } = statSync('/etc/passwd')
    return mtimeMs !== passwd.mtimeMs || mode !== passwd.mode ? [...gained, 'changed /etc/passwd'] : gained
  },
}

const rescuedState: Attack = {
  name: 'files-rescued-state',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    if (skipWithoutTerraformEngine) throw new NotRunHere(skipWithoutTerraformEngine)
    const token = adminToken(target)
    const command = `printf '{\\"version\\":4,\\"serial\\":9,\\"lineage\\":\\"x\\",\\"resources\\":[],\\"outputs\\":{}}' > errored.tfstate; for n in ${names.join(' ')}; do rm -f ../scratch/$n ../inputs/$n; ln -s ${token.path} ../scratch/$n; ln -s ${token.path} ../inputs/$n; done; exit 0`
    const main = `resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = <<-EOT\n${command.replaceAll('\\"', '"')}\n    EOT\n  }\n}\n`
    const { text } = await target.runStack({ engine: terraformEngine, source: { inline: { files: { 'main.tf': main } } } })
    control(/terraform_data/.test(text) && text.includes('"Succeeded"'), `its program has not run: ${text.slice(0, 300)}`)
    return [...target.secretsIn(text), ...token.changes()]
  },
}

export const sharedFileAttacks: readonly Attack[] = [symlinks, directories, pipes, hugeFiles, race, hardLinks, rescuedState]

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadEngine } from '../../execution/engine/index.ts'
import { hideCredentials } from '../../kubernetes/util/index.ts'
import { defaultStateLimits } from '../../stores/state/index.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'

/** Backends that the CLI can log in to. Of a directory, its file is read without the CLI. */
export const isBackendUrl = (from: string): boolean => /^(s3|gs|azblob|https?):\/\//.test(from)

export type BackendStack = {
  readonly url: string
  /** Which stack; undefined: the only one of `stack`. */
  readonly name: string | undefined
  /** The name of the stack in its project. */
  readonly stack: string
}

/**
 * The state of a stack in a bucket or in Pulumi Cloud, with its secrets in plain text. The Pulumi CLI reads it, with the user's environment: every
 * backend and every secrets provider that it supports. Nothing is written there.
 * @throws {CliError} without the CLI, if it fails, and if it is unknown which stack is meant.
 */
export async function readPulumiUrl(from: BackendStack, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const found = await (await loadEngine('pulumi')).detect(env)
  const { url } = from
  if (!found.found) {
    const pipe = '"pulumi stack export --show-secrets --stack NAME | oarlock state import STACK --from -"'
    throw new CliError(`${hideCredentials(url)} is read with the Pulumi CLI, which was not found: ${found.reasons.join(', ')}`, {
      hint: `${found.howToInstall}; or import what it prints elsewhere: ${pipe}`,
    })
  }
  // Not in a project, whose backend would be another one.
  const cwd = await mkdtemp(join(tmpdir(), 'oarlock-import-'))
  const pulumi = async (...args: string[]) => {
    const settings = {
      ...{ cwd, maxBuffer: defaultStateLimits.maxBytes },
      env: { ...env, PULUMI_BACKEND_URL: url, PULUMI_SKIP_UPDATE_CHECK: 'true' },
    }
    const { error, stdout, stderr } = await new Promise<{ error: Error | null; stdout: string; stderr: string }>(done =>
      execFile(found.path, [...args, '--non-interactive', '--color', 'never'], settings, (error, stdout, stderr) =>
        done({ error, stdout, stderr }),
      ),
    )
    if (!error) return stdout
    const hint = 'its credentials and its passphrase come from the environment of this command, as with the CLI itself'
    throw new CliError(`"pulumi ${args.join(' ')}" failed: ${stderr.trim() || error.message}`, { hint })
  }
  try {
    const stacks = JSON.parse(await pulumi('stack', 'ls', '--all', '--json')) as { name: string }[]
    const name = chooseStack(
      stacks.map(each => each.name),
      { ...from, url: hideCredentials(url) },
    )
    return await pulumi('stack', 'export', '--show-secrets', `--stack=${name}`)
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

/** @param names as the CLI lists them: `organization/project/stack`, without a project in old backends. @throws {CliError} */
export function chooseStack(names: readonly string[], { url, name, stack }: BackendStack): string {
  const wanted = name ?? stack
  const matching = names.filter(each => each === wanted || each.endsWith(`/${wanted}`))
  const [chosen, ...others] = matching
  if (chosen !== undefined && others.length === 0) return chosen
  const listed = (all: readonly string[]) => `${all.slice(0, 10).join(', ')}${all.length > 10 ? ', …' : ''}`
  if (chosen !== undefined)
    throw usageError(`${url} has ${matching.length} stacks ${JSON.stringify(wanted)}`, `name one with --pulumi-stack: ${listed(matching)}`)
  throw new CliError(`${url} has no stack ${JSON.stringify(wanted)}`, {
    exitCode: exitCodes.notFound,
    hint: names.length === 0 ? 'it has no stacks: check the address' : `name one with --pulumi-stack: ${listed(names)}`,
  })
}

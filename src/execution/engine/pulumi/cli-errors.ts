import { stripVTControlCharacters } from 'node:util'
import type { EngineErrorReason } from '../engine-error.ts'

/** Languages whose hosts are in the archive of each release, next to the CLI. */
const bundledLanguages: readonly string[] = ['nodejs', 'bun', 'python', 'go', 'dotnet', 'java', 'yaml']
/** Providers of dynamic resources, in the same place. The CLI looks for every other one on the PATH. */
const bundledProviders: readonly string[] = ['pulumi-nodejs', 'pulumi-python']
const completeRelease = 'install the complete release of Pulumi on the worker, which has it next to the CLI'
const passphraseVariables = 'PULUMI_CONFIG_PASSPHRASE with spec.env of the Stack (secretKeyRef)'

/** A line of stderr that is part of an error message: without colours, and without the label of its severity. Undefined: it is about something else. */
export function errorLine(line: string): string | undefined {
  const text = stripVTControlCharacters(line).trim()
  if (text === '' || text.startsWith('warning:') || isLoginNote(text)) return undefined
  return text.replace(/^error: (?!$)/i, '')
}

/** The CLI prints it with each command. */
export const isLoginNote = (line: string): boolean => line.startsWith('Logging in using access token')

export type ExplainedError = { readonly reason: EngineErrorReason; readonly message: string; readonly isRetryable: boolean }

/**
 * What an error of the CLI means for a Stack, with the remedy that exists here: the CLI names commands that a user of Oarlock does not run.
 * @param binary of the CLI.
 * @returns undefined for any other error.
 */
export function explainCliError(message: string, binary: string): ExplainedError | undefined {
  const host = /no language plugin 'pulumi-language-([\w.-]+)' found|the ([\w.-]+) language plugin is bundled with Pulumi/.exec(message)
  if (host) {
    const language = host[1] ?? host[2] ?? ''
    const isBundled = bundledLanguages.includes(language)
    const where = isBundled ? `neither next to ${binary} nor on the PATH of the Run` : 'not on the PATH of the Run'
    const remedy = isBundled
      ? completeRelease
      : 'Pulumi does not include it; install it on the worker, in a directory of the PATH, or correct runtime in Pulumi.yaml'
    const text = `the language host of ${language} programs was not found: pulumi-language-${language} is ${where}; ${remedy}`
    return { reason: 'EngineNotFound', message: text, isRetryable: false }
  }
  const plugin =
    /(?:no|install) (resource|analyzer) plugin '?pulumi-(?:resource|analyzer)-([\w.-]+?)'?(?: found|\b)(?:.*? at version (v[\w.+-]+))?/.exec(
      message,
    ) ?? /could not find latest version for (provider) ([\w.-]+)()/.exec(message)
  if (plugin) {
    const [, kind, name = '', version = ''] = plugin
    const file = kind === 'analyzer' ? `pulumi-analyzer-${name}` : `pulumi-resource-${name}`
    // What the download failed with, and nothing of what the CLI suggests.
    const detail = message.split(/, (?:install the plugin|please)/)[0] ?? ''
    const remedy = bundledProviders.includes(name)
      ? completeRelease
      : "install it in a directory of the PATH of the Run, or allow the worker to reach the plugin's server"
    const text = `the plugin ${file}${version && ` ${version}`} is not on the worker and cannot be downloaded: ${detail}; ${remedy}`
    // A typing error in the name and a server that is not reached look the same.
    return { reason: 'InitFailed', message: text, isRetryable: true }
  }
  if (/passphrase must be set with PULUMI_CONFIG_PASSPHRASE/.test(message)) {
    const text = `secrets of the configuration file or of the state are encrypted with a passphrase, which this Run does not have: set ${passphraseVariables}`
    return { reason: 'InvalidConfiguration', message: text, isRetryable: false }
  }
  if (/incorrect passphrase/.test(message)) {
    const text = `the passphrase of the environment does not decrypt the secrets of the configuration file or of the state; correct ${passphraseVariables}`
    return { reason: 'InvalidConfiguration', message: text, isRetryable: false }
  }
  const unencrypted = /configuration key '([^']*)' must be encrypted as it's secret/.exec(message)
  if (unencrypted) {
    const text = `Pulumi.yaml declares the configuration ${unencrypted[1]} as secret, but its value is not: pass it with a secretRef in spec.variablesFrom instead of spec.variables`
    return { reason: 'InvalidConfiguration', message: text, isRetryable: false }
  }
  const missing = /is missing configuration values? ('.*')/.exec(message)
  if (missing) {
    const text = `the program requires the configuration ${missing[1]}: set it with spec.variables or spec.variablesFrom of the Stack`
    return { reason: 'InvalidConfiguration', message: text, isRetryable: false }
  }
  const unknown = /Target '(.*)' could not be found in the stack/.exec(message)
  if (unknown) {
    const text = `${unknown[1]} is neither in the program nor in the state: correct targets or replace of the Run or of spec.pulumi; "oarlock state show NAME" lists the URNs`
    return { reason: 'InvalidConfiguration', message: text, isRetryable: false }
  }
  return undefined
}

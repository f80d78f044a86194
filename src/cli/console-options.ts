import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { type ConsoleSettings, isLoopback } from '../app/index.ts'
import { usageError } from './cli-error.ts'
import { collect } from './options.ts'

/** How users reach the console, sign in, and whether they can act. Names of OIDC options are those of kube-apiserver. */
export function consoleOptions(command: Command): Command {
  return command
    .option('--console-host <name>', 'host name under which browsers reach the console with TLS, repeatable', collect, [])
    .option('--console-read-only', 'the console shows everything and changes nothing')
    .option('--oidc-issuer-url <url>', 'OpenID Connect provider of users of the console (default: none)', issuerUrl)
    .option('--oidc-client-id <id>', 'client of the provider; its redirect URL is https://NAME/console/api/oidc/callback')
    .option('--oidc-client-secret-file <file>', 'secret of the client (default: it is public and has none)')
    .option('--oidc-ca-file <file>', 'PEM file with the CA certificates to trust for the provider (default: those of the system)')
    .option('--oidc-name <text>', 'name of the provider on the page (default: its host)')
    .option('--oidc-scope <scope>', 'what is requested besides openid, repeatable (default: profile and email)', collect, [])
    .option('--oidc-username-claim <claim>', 'claim that is the user name', 'sub')
    .option('--oidc-username-prefix <prefix>', 'of user names, - for none (default: the issuer and #; none with the claim email)')
    .option('--oidc-groups-claim <claim>', 'claim with the groups (default: users have none)')
    .option('--oidc-groups-prefix <prefix>', 'of groups', '')
    .option('--oidc-group <group>', 'group, with its prefix, that users can have, repeatable (default: all)', collect, [])
}

export type ConsoleFlags = {
  consoleHost: string[]
  consoleReadOnly?: boolean
  oidcIssuerUrl?: string
  oidcClientId?: string
  oidcClientSecretFile?: string
  oidcCaFile?: string
  oidcName?: string
  oidcScope: string[]
  oidcUsernameClaim: string
  oidcUsernamePrefix?: string
  oidcGroupsClaim?: string
  oidcGroupsPrefix: string
  oidcGroup: string[]
}

/** @throws {CliError} usage, if options of the provider are missing, or a file of it cannot be read. */
export function consoleSettings(flags: ConsoleFlags, command: string): ConsoleSettings {
  const help = `oarlock ${command} --help`
  const { oidcIssuerUrl: issuerUrl, oidcClientId: clientId } = flags
  if ((issuerUrl === undefined) !== (clientId === undefined))
    throw usageError('--oidc-issuer-url and --oidc-client-id must be used together', help)
  return {
    hosts: flags.consoleHost,
    readOnly: flags.consoleReadOnly === true,
    ...(issuerUrl !== undefined &&
      clientId !== undefined && {
        oidc: {
          ...{ issuerUrl, clientId, name: flags.oidcName },
          clientSecret: flags.oidcClientSecretFile === undefined ? undefined : readSecret(flags.oidcClientSecretFile, help),
          caCertificate: flags.oidcCaFile === undefined ? undefined : readCertificates(flags.oidcCaFile, help),
          scopes: ['openid', ...(flags.oidcScope.length > 0 ? flags.oidcScope : ['profile', 'email'])],
          ...{ usernameClaim: flags.oidcUsernameClaim, usernamePrefix: flags.oidcUsernamePrefix },
          ...{ groupsClaim: flags.oidcGroupsClaim, groupsPrefix: flags.oidcGroupsPrefix },
          allowedGroups: flags.oidcGroup.length > 0 ? flags.oidcGroup : undefined,
        },
      }),
  }
}

const readSecret = (path: string, help: string): string => readOption('--oidc-client-secret-file', path, help).trim()

function readCertificates(path: string, help: string): string {
  const text = readOption('--oidc-ca-file', path, help)
  try {
    new X509Certificate(text)
    return text
  } catch {
    throw usageError(`--oidc-ca-file ${path} must contain a PEM certificate`, help)
  }
}

function readOption(option: string, path: string, help: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw usageError(`${option} ${path}: ${(error as NodeJS.ErrnoException).code}`, help)
  }
}

/** Plain HTTP only where nothing can read it: on a loopback name, for tests. */
function issuerUrl(text: string): string {
  const url = URL.parse(text)
  const isLocal = url !== null && isLoopback({ host: url.hostname.replace(/^\[|\]$/g, '') })
  if (url?.protocol !== 'https:' && !(url?.protocol === 'http:' && isLocal))
    throw new InvalidArgumentError('It must be a URL that begins with https://.')
  return text
}

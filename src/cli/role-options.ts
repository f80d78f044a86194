import { type Command, InvalidArgumentError, Option } from 'commander'
import { httpsUrlError } from '../kubernetes/util/index.ts'
import { usageError } from './cli-error.ts'
import { collect, duration } from './options.ts'

/** The options of a role that runs as a process of its own and connects to an API server. */
export function roleOptions(command: Command, { dataName, grace = '10s' }: { dataName: string; grace?: string }): Command {
  return command
    .option('--kubeconfig <file>', 'kubeconfig (default: $KUBECONFIG, the service account of the Pod, ~/.kube/config)')
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .addOption(new Option('--data <dir>', `directory for ${dataName}`).makeOptionMandatory())
    .option('--log <file>', 'log file, - for stderr', '-')
    .addOption(new Option('--log-level <level>', 'minimum log level').choices(['debug', 'info', 'warn', 'error']).default('info'))
    .option('--grace <duration>', 'time for work in progress to finish on shutdown', duration, grace)
}

/** Where a role serves requests of other roles, and under which names. */
export function listenOptions(
  command: Command,
  { what, port, ownCertificate }: { what: string; port: number; ownCertificate: boolean },
): Command {
  addressOptions(command, { what, port }).option(
    '--advertise-url <url>',
    'URL at which others reach this process (default: that of --listen)',
    httpsUrl,
  )
  if (!ownCertificate) return command
  return certificateFileOptions(command).option(
    '--tls-ca-file <file>',
    'PEM authorities of --tls-cert-file, which clients find with the address (default: those of the system)',
  )
}

/** Where a role serves browsers. */
export const certificateOptions = (command: Command, address: { what: string; port: number }): Command =>
  certificateFileOptions(addressOptions(command, address))

const addressOptions = (command: Command, { what, port }: { what: string; port: number }): Command =>
  command
    .option('--listen <host:port>', `address of ${what} (TLS); port 0 picks a free port`, `127.0.0.1:${port}`)
    .option('--tls-san <name>', 'additional host name or IP address for the certificate, repeatable', collect, [])

const certificateFileOptions = (command: Command): Command =>
  command
    .option('--tls-cert-file <file>', 'PEM certificate (default: issued by its own CA)')
    .option('--tls-private-key-file <file>', 'PEM key of --tls-cert-file')

export function httpsUrl(text: string): string {
  const problem = httpsUrlError(text)
  if (problem !== undefined) throw new InvalidArgumentError(`It ${problem}.`)
  return text
}

export type RoleListenOptions = {
  listen: string
  tlsSan: string[]
  advertiseUrl?: string
  tlsCertFile?: string
  tlsPrivateKeyFile?: string
  tlsCaFile?: string
}

/** The files of `--tls-cert-file`, `--tls-private-key-file` and `--tls-ca-file`. @throws {CliError} usage, if one that is needed is missing. */
export function certificateFiles(
  { tlsCertFile, tlsPrivateKeyFile, tlsCaFile }: Pick<RoleListenOptions, 'tlsCertFile' | 'tlsPrivateKeyFile' | 'tlsCaFile'>,
  command: string,
): { certificate: string; key: string; ca: string | undefined } | undefined {
  if (tlsCertFile === undefined && tlsPrivateKeyFile === undefined && tlsCaFile === undefined) return undefined
  if (tlsCertFile === undefined || tlsPrivateKeyFile === undefined)
    throw usageError('--tls-cert-file and --tls-private-key-file must be given together', `oarlock ${command} --help`)
  return { certificate: tlsCertFile, key: tlsPrivateKeyFile, ca: tlsCaFile }
}

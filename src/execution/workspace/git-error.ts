import type { GitResult } from './git-command.ts'
import { SourceError } from './source-error.ts'

/** Converts the output of a failed git into an error that the author of the Stack can act on. `what` is the requested ref, such as `branch "main"`. */
export function gitError(result: GitResult, field: string, url: string, what?: string): SourceError {
  const text = result.stderr.join('\n')
  const messages = result.stderr
    .filter(line => /^(fatal|error|remote|ssh|git@|Host|Permission)/i.test(line))
    .slice(0, 4)
    .join('; ')
  const output = messages || result.stderr.at(-1) || `git failed with exit code ${result.exitCode}`
  const repository = JSON.stringify(url)
  if (/couldn't find remote ref|not our ref|unadvertised object|does not exist in|bad object|invalid reference/i.test(text) && what) {
    return new SourceError('SourceNotFound', field, `${what} was not found in ${repository}`)
  }
  if (
    /authentication failed|could not read (username|password)|permission denied|access denied|returned error: 40[13]|host key verification failed|terminal prompts disabled/i.test(
      text,
    )
  ) {
    const hint =
      'check the Secret named in spec.source.git.secretRef: username and password for https, ssh-privatekey and known_hosts for ssh'
    return new SourceError('SourceAuthFailed', 'spec.source.git', `${repository} denied access: ${output}; ${hint}`)
  }
  if (
    /could not resolve host|connection (refused|timed out|reset)|timed out|network is unreachable|early eof|hung up unexpectedly/i.test(
      text,
    ) &&
    !/not found|does not exist/i.test(text)
  ) {
    return new SourceError('SourceUnavailable', 'spec.source.git.url', `${repository} cannot be reached: ${output}`)
  }
  if (/not found|does not exist|does not appear to be a git repository|no such file/i.test(text)) {
    return new SourceError('SourceNotFound', 'spec.source.git.url', `${repository} is not a readable repository: ${output}`)
  }
  return new SourceError('SourceUnavailable', 'spec.source.git.url', `${repository}: ${output}`)
}

import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { errorLine, explainCliError } from './cli-errors.ts'

// What CLI 3.260 has printed.
for (const [name, printed, want] of [
  [
    'a language host of Pulumi is missing',
    "failed to load language plugin java: no language plugin 'pulumi-language-java' found in the workspace or on your $PATH",
    [
      ...['EngineNotFound', false],
      'the language host of java programs was not found: pulumi-language-java is neither next to /opt/pulumi nor on the PATH of the Run; install the complete release of Pulumi on the worker, which has it next to the CLI',
    ],
  ],
  [
    'another language host is missing',
    "load language plugin scala: no language plugin 'pulumi-language-scala' found in the workspace or on your $PATH",
    [
      ...['EngineNotFound', false],
      'the language host of scala programs was not found: pulumi-language-scala is not on the PATH of the Run; Pulumi does not include it; install it on the worker, in a directory of the PATH, or correct runtime in Pulumi.yaml',
    ],
  ],
  [
    'a plugin cannot be downloaded',
    'error resolving type of resource b: internal error loading package "foo": rpc error: code = Unknown desc = could not find latest version for provider foo: Get "https://api.github.com/": dial tcp: lookup api.github.com: no such host',
    [
      ...['InitFailed', true],
      'the plugin pulumi-resource-foo is not on the worker and cannot be downloaded: error resolving type of resource b: internal error loading package "foo": rpc error: code = Unknown desc = could not find latest version for provider foo: Get "https://api.github.com/": dial tcp: lookup api.github.com: no such host; install it in a directory of the PATH of the Run, or allow the worker to reach the plugin\'s server',
    ],
  ],
  [
    'the provider of dynamic resources is missing',
    'pulumi:providers:pulumi-nodejs default: could not find latest version for provider pulumi-nodejs: no such host',
    [
      ...['InitFailed', true],
      'the plugin pulumi-resource-pulumi-nodejs is not on the worker and cannot be downloaded: pulumi:providers:pulumi-nodejs default: could not find latest version for provider pulumi-nodejs: no such host; install the complete release of Pulumi on the worker, which has it next to the CLI',
    ],
  ],
  [
    'a plugin of a version is missing',
    "no resource plugin 'pulumi-resource-aws' found in the workspace at version v7.1.0 or on your $PATH",
    [
      ...['InitFailed', true],
      "the plugin pulumi-resource-aws v7.1.0 is not on the worker and cannot be downloaded: no resource plugin 'pulumi-resource-aws' found in the workspace at version v7.1.0 or on your $PATH; install it in a directory of the PATH of the Run, or allow the worker to reach the plugin's server",
    ],
  ],
  [
    'a passphrase is missing',
    'getting stack configuration: get stack secrets manager: passphrase must be set with PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables',
    [
      ...['InvalidConfiguration', false],
      'secrets of the configuration file or of the state are encrypted with a passphrase, which this Run does not have: set PULUMI_CONFIG_PASSPHRASE with spec.env of the Stack (secretKeyRef)',
    ],
  ],
  [
    'a passphrase is wrong',
    'getting stack configuration: get stack secrets manager: incorrect passphrase',
    [
      ...['InvalidConfiguration', false],
      'the passphrase of the environment does not decrypt the secrets of the configuration file or of the state; correct PULUMI_CONFIG_PASSPHRASE with spec.env of the Stack (secretKeyRef)',
    ],
  ],
  [
    'a value must be secret',
    "validating stack config: Stack 'dev' with configuration key 'j:a' must be encrypted as it's secret",
    [
      ...['InvalidConfiguration', false],
      'Pulumi.yaml declares the configuration j:a as secret, but its value is not: pass it with a secretRef in spec.variablesFrom instead of spec.variables',
    ],
  ],
  [
    'values are missing',
    "validating stack config: Stack 'dev' is missing configuration values 'j:a' and 'j:b'",
    [
      ...['InvalidConfiguration', false],
      "the program requires the configuration 'j:a' and 'j:b': set it with spec.variables or spec.variablesFrom of the Stack",
    ],
  ],
  [
    'a target does not exist',
    "Target 'urn:pulumi:dev::p::a:b:C::c' could not be found in the stack. Did you forget to escape $ in your shell?",
    [
      ...['InvalidConfiguration', false],
      'urn:pulumi:dev::p::a:b:C::c is neither in the program nor in the state: correct targets or replace of the Run or of spec.pulumi; "oarlock state show NAME" lists the URNs',
    ],
  ],
  ['another error', 'resource, variable, or config value "nope" not found', undefined],
] as const) {
  test(`explains: ${name}`, () => {
    const found = explainCliError(printed, '/opt/pulumi')
    deepEqual(found && [found.reason, found.isRetryable, found.message], want)
  })
}

test('a line of an error has no colours, no label and no note of the login', () => {
  equal(errorLine('\u001b[31merror: \u001b[0mit failed'), 'it failed')
  equal(errorLine('Logging in using access token from PULUMI_ACCESS_TOKEN'), undefined)
  equal(errorLine('warning: using pulumi-resource-x from $PATH'), undefined)
  equal(errorLine(' '), undefined)
})

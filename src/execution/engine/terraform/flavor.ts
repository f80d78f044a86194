/** The differences between Terraform and OpenTofu. */
export type Flavor = {
  name: 'terraform' | 'opentofu'
  title: string
  binary: string
  /** Environment variable of the worker with the path of the binary. */
  override: string
  howToInstall: string
  /** From this version on, `apply` of a saved plan accepts variables, which ephemeral variables need. */
  planTakesVariables: [number, number]
}

export const terraformFlavor: Flavor = {
  name: 'terraform',
  title: 'Terraform',
  binary: 'terraform',
  override: 'OARLOCK_TERRAFORM',
  howToInstall: 'install it from https://developer.hashicorp.com/terraform/install, or set OARLOCK_TERRAFORM to the path of the binary',
  planTakesVariables: [1, 10],
}

export const opentofuFlavor: Flavor = {
  name: 'opentofu',
  title: 'OpenTofu',
  binary: 'tofu',
  override: 'OARLOCK_TOFU',
  howToInstall: 'install it from https://opentofu.org/docs/intro/install, or set OARLOCK_TOFU to the path of the binary',
  planTakesVariables: [1, 11],
}

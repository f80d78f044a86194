/** A kubeconfig with one context: this server, its certificate authority, the administrator's token. */
export function kubeconfigText({ url, ca, token }: { url: string; ca: string; token: string }): string {
  // A JSON string is always a YAML string.
  return `apiVersion: v1
kind: Config
clusters:
  - name: oarlock
    cluster:
      server: ${JSON.stringify(url)}
      certificate-authority-data: ${JSON.stringify(Buffer.from(ca).toString('base64'))}
users:
  - name: admin
    user:
      token: ${JSON.stringify(token)}
contexts:
  - name: oarlock
    context:
      cluster: oarlock
      user: admin
      namespace: default
current-context: oarlock
`
}

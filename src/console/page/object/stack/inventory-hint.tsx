import type { ResourceAttribute } from '../../../protocol/index.ts'
import { Command } from '../../parts/command.tsx'

/** What a shell reads as one word. */
const plainWord = /^\w[\w.:-]*$/

/** Where more of an object is: the inventory only identifies it. */
export function InventoryHint({ facts }: { readonly facts: readonly ResourceAttribute[] }) {
  const fact = (wanted: string) => facts.find(({ name }) => name === wanted)?.text ?? ''
  const [group = '', version] = fact('apiVersion').split('/')
  const type = version === undefined ? fact('kind') : `${fact('kind')}.${version}.${group}`
  const command = [type, fact('name'), ...(fact('namespace') ? ['-n', fact('namespace')] : [])]
  const isPlain = [type, fact('name'), fact('namespace') || 'none'].every(word => plainWord.test(word))
  return (
    <>
      <p class="hint">The inventory has no more of it. The cluster that the Stack applies to has the object:</p>
      {isPlain && <Command text={`kubectl get ${command.join(' ')} -o yaml`} />}
    </>
  )
}

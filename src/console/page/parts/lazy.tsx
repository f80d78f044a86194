import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Notice } from './notice.tsx'

/** A component that is loaded when it is shown first. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined
  return function Lazy(props: Props) {
    const [state, setState] = useState<'loading' | 'loaded' | 'failed'>(loaded ? 'loaded' : 'loading')
    useEffect(() => {
      if (loaded) return
      load().then(
        component => {
          loaded = component
          setState('loaded')
        },
        () => setState('failed'),
      )
    }, [])
    if (state === 'failed')
      return (
        <Notice isError title="This part of the page could not be loaded">
          <p>The server may have been replaced by another version: load the page again.</p>
        </Notice>
      )
    const Loaded = loaded
    return Loaded ? <Loaded {...props} /> : <div class="loading" aria-busy="true" />
  }
}

/** How many may do something at a time; the others wait in order. One that takes long does not hold the others: its slot is free after `heldMs`. */
export class Slots {
  #free: number
  readonly #heldMs: number
  readonly #waiting: (() => void)[] = []

  constructor(count: number, heldMs: number) {
    this.#free = count
    this.#heldMs = heldMs
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    let isHeld = true
    const release = () => {
      if (!isHeld) return
      isHeld = false
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
    const timer = setTimeout(release, this.#heldMs)
    try {
      return await task()
    } finally {
      clearTimeout(timer)
      release()
    }
  }
}

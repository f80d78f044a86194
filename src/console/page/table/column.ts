import type { ComponentChildren } from 'preact'

export type Column<Row> = {
  readonly id: string
  readonly label: string
  /** A track of a CSS grid. */
  readonly width: string
  /** The field that a click on the header sorts by; undefined: it does not sort. */
  readonly sort?: keyof Row & string
  /** Numbers and times: aligned by their digits. */
  readonly isNumber?: boolean
  /** Shown only if the user chooses it. */
  readonly isOptional?: boolean
  cell(row: Row): ComponentChildren
}

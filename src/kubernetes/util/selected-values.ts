/** What selectors select one version of an object by, besides its name, namespace and UID. */
export type VersionValues = {
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly fields: Readonly<Record<string, string>>
}

/**
 * What selectors select by, of an event: a gateway decides with it for each of its clients whether an object enters or leaves a selection, and does not
 * decode the object.
 */
export type SelectedValues = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Undefined if the object is deleted. */
  readonly after?: VersionValues
  /** Undefined if the object is new; true: as after. */
  readonly before?: VersionValues | true
}

export { Lifecycle } from './lifecycle.ts'

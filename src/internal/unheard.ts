/**
 * What if somebody's code gives a promise where it should give an Effect? Nobody waits for it, and it must not end the program
 * when it is rejected.
 */
export const unheard = (given: unknown): void => {
  if (given instanceof Promise) Promise.prototype.then.call(given, undefined, () => {})
}

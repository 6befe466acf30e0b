/**
 * How is a name part of a key? So that every store tells two names apart: files may be named without a difference between
 * capitals and small letters, so capitals are spelled out, and the dot, which stands between the parts of a key.
 */
export const spelled = (name: string): string =>
  name.replace(/[^a-z0-9_-]/gu, (character) => `~${character.codePointAt(0)?.toString(16)}~`)

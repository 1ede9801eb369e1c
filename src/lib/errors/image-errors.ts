import { type ApiError, notFound } from './api-error.ts'

/** The name of an image for a message. */
export const quotedImage = (name: string): string => JSON.stringify(name.slice(0, 200))

export const noSuchImage = (name: string): ApiError =>
  notFound(`image: there is no ${quotedImage(name)}; GET .../images lists the images`, { code: 'no-such-image' })

/** Where a gateway has the images that it keeps; the rest of the path is sealed by it. */
export const keptImagesPath = '/v2/kept-images/'

/**
 * The header with such a path, on an upload to a compute that has joined: the content is there, and the request has no body. The compute asks the
 * gateway that it has joined, and no other server.
 */
export const contentAtHeader = 'x-patchbay-content-at'

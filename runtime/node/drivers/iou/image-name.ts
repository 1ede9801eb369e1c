/** Whether a file has the name of an IOU image: other programs may be in the same directory. */
export const isImageName = (name: string): boolean => /\.bin$|^i86bi/i.test(name)

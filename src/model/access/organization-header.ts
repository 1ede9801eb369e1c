/** The header by which the administrator of the deployment acts in an organization. */
export const organizationHeader = 'X-Patchbay-Organization'

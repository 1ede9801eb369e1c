/** A method of HTTP that endpoints have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

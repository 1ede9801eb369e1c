import { expect, test } from 'vitest'
import { parseSshKey } from '../../../../src/model/access/ssh-key.ts'

// Made by ssh-keygen, which also says the fingerprints.
const keys = {
  'SHA256:j1vqiGj/i4x5n0fu7rWUCv6kYwNJkBdf7Zhe3AatReM':
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDrd1iSkzlEanBBAaUd/3rg3kqIGbfPdcE5pjcq5CGp8',
  'SHA256:ELwtY5rvlE1NodgxoewlNY7KqAQIb/gtZdvzS0QLDQU':
    'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCVMWkM85SMT9Cw8Q/lDCNOfgkep+KrcLmjqnqWU4+4t8J+NdRA+HA2pfLuAX+WEDXm7XzVQHV6Is2Pg0Tyd33iRsAkDgVKgJfp8r9iZXCAioxk5vpsix+MsmRHlN2u74sVSuI8z99H6Qrhkb0YXgKETEm3R2uKMEB0+o37mRu6WMS4vIJA+uhWwEyEX0wjZQL+3ef/M6+egzcJXel7o1RzRHQB0YFBtYX2cwK723dCYHzge1LLLyEo/8Bdkhhl7u24SNGX0jKa+Jg9cQ/Qdy0o+gpowRsQZZMzMWYozRiQu8tV33irisIXlZtJf3Sm0DGpcaPkBJ+x3OibqUSnsAYT',
  'SHA256:Mioa33mZdfeSLYIAlf6U+DkvzVRHz+i+L8JEO7I5H+M':
    'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHZYfY2m4ByGsK7//7m0xYcI115iNUFJrNQUuDofsMeTyhkVsrY1EJU4MlyBsR/xiX+JpFECGkjB0J5djfNDSW4=',
}

test.for(Object.entries(keys))('%s is read as ssh-keygen reads it', async ([fingerprint, line]) => {
  const read = await parseSshKey(`${line} ann@example of the lab\n`)
  expect(read).toEqual({ fingerprint, public_key: line, comment: 'ann@example of the lab', key_id: expect.any(String) })
  expect(read.key_id).toMatch(/^[0-9a-f]{16}$/)
  expect((await parseSshKey(line)).comment).toBe('')
})

const [ed25519] = Object.values(keys).filter((line) => line.startsWith('ssh-ed25519'))
const short =
  'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDgf52rxVDJhJ2yMHuXpk+81xJTpp/PXlwkF8zl8EqD3LH5uG1ErmXl6MUBupyygSia14AabEfZXxPOfpMlT/Jyd/Zm9S97pd3cO16DHDlKyYqMVYVstpRv8ne+40O9LfkM09tBm8ApN7XaLKmBU0BO8V8Wv/mofu2Z+8CpTmhbdQ=='

test.for([
  ['-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA', 'this is a private key, which stays with its owner'],
  ['---- BEGIN SSH2 PUBLIC KEY ----\nAAAA', '"ssh-keygen -i -f FILE" shows it as a line of OpenSSH'],
  [`${ed25519}\n${ed25519}`, 'expected one line with one key'],
  [`restrict ${ed25519}`, 'it begins with "restrict"'],
  ['ssh-dss AAAA', 'expected a line that begins with one of ssh-ed25519, '],
  ['__proto__ AAAA', 'it begins with "__proto__"'],
  ['constructor AAAA', 'it begins with "constructor"'],
  ['sk-ssh-ed25519@openssh.com AAAA', 'it begins with "sk-ssh-ed25519@openssh.com"'],
  ['ssh-ed25519', 'expected 32 bytes, in base64'],
  ['ssh-ed25519 %%%%', 'expected 32 bytes, in base64'],
  [`${ed25519?.slice(0, -4)}`, 'expected 32 bytes, in base64'],
  [`ssh-rsa ${ed25519?.split(' ')[1]}`, 'what follows ssh-rsa is not such a key'],
  [short, 'a modulus of at least 2048 bits'],
])('%j is refused', async ([line, message]) => {
  await expect(parseSshKey(line as string)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining(message as string),
  })
})

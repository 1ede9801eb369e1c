import { expect, test } from 'vitest'
import { containerImageFile, containerImageName, imageCommands } from '../../../../src/model/kinds/image-names.ts'

test.each([
  ['frrouting/frr:v8.4.0', 'frrouting_frr_v8.4.0.tar'],
  ['alpine', 'alpine_latest.tar'],
  ['docker.io/library/alpine:3', 'alpine_3.tar'],
  ['docker.io/nicolaka/netshoot', 'nicolaka_netshoot_latest.tar'],
  ['localhost:5000/lab/host', 'localhost_5000_lab_host_latest.tar'],
  ['quay.io/frrouting/frr@sha256:ab12', 'quay.io_frrouting_frr_sha256_ab12.tar'],
  ['../../etc/passwd', '_._.._etc_passwd_latest.tar'],
  [`a${'b'.repeat(300)}`, `a${'b'.repeat(199)}.tar`],
  ['frr-10-2-1-r1.tar.gz', 'frr-10-2-1-r1.tar.gz'],
  ['busybox.tar:latest', 'busybox.tar'],
])('the image %s is the file %s', (reference, file) => {
  expect(containerImageFile(reference)).toBe(file)
})

test.each([
  ['frrouting_frr_v8.4.0.tar', 'frrouting/frr:v8.4.0'],
  ['alpine_latest.tar', 'alpine:latest'],
  ['quay.io_frrouting_frr_9.tar', 'quay.io/frrouting/frr:9'],
  ['busybox.tar', 'busybox.tar'],
  ['frr-10-2-1-r1.tar.gz', 'frr-10-2-1-r1.tar.gz'],
  ['_x_1.tar', '_x_1.tar'],
  ['my images/frr_1.tar', 'my images/frr_1.tar'],
])('the file %s has the image %s, whose file it is', (file, name) => {
  expect(containerImageName(file)).toBe(name)
  expect(containerImageFile(name)).toBe(file)
})

test('the commands that make the file are those of skopeo and docker, and never others', () => {
  expect(imageCommands('alpine')).toBe(
    '"patchbay images pull alpine" fetches it, or "docker save -o alpine_latest.tar alpine" makes a file to upload',
  )
  for (const name of ['alpine; reboot', '-v', '$(reboot)', 'a\nb', '']) expect(imageCommands(name)).toBeUndefined()
})

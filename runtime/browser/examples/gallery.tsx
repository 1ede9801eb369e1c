import leafSpine from '../../../examples/leaf-spine/leaf-spine.lab.yaml'
import ospf from '../../../examples/ospf/ospf.lab.yaml'
import repair from '../../../examples/repair/repair.lab.yaml'
import twoPcs from '../../../examples/two-pcs/two-pcs.lab.yaml'
import vlans from '../../../examples/vlans/vlans.lab.yaml'
import wan from '../../../examples/wan/wan.lab.yaml'
import webServer from '../../../examples/web-server/web-server.lab.yaml'
import { MapPicture } from '../canvas/map-picture.tsx'
import { type ExampleLab, exampleMap } from './example-lab.ts'

interface GalleryEntry {
  readonly example: ExampleLab
  readonly title: string
  readonly about: string
  /** What its nodes need that no service has from the start: programs and images, and where the latter come from. */
  readonly needs?: { readonly short: string; readonly long: string }
}

const made = (images: string) => `examples/guests/make.sh of the source of Patchbay makes ${images}`

/** The labs to begin with. */
const gallery: readonly GalleryEntry[] = [
  { example: twoPcs, title: 'Two PCs', about: 'The first ping, over one cable' },
  { example: vlans, title: 'VLANs', about: 'Two VLANs over one trunk' },
  { example: wan, title: 'WAN', about: 'A line with delay, loss and two rates' },
  { example: repair, title: 'Repair', about: 'An exercise with tasks: find three faults' },
  {
    example: ospf,
    title: 'OSPF',
    about: 'Three routers in a triangle',
    needs: { short: 'Needs QEMU, and a guest that you make', long: made('vmlinuz and frr.img') },
  },
  {
    example: leafSpine,
    title: 'Leaf and spine',
    about: 'Two ways to everywhere, measured with iperf3',
    needs: { short: 'Needs crun, and images that you make', long: made('frr.tar and iperf3.tar') },
  },
  {
    example: webServer,
    title: 'Web server',
    about: 'A server behind a router, and its client',
    needs: { short: 'Needs crun, and an image that you make', long: made('busybox.tar') },
  },
]

const maps = gallery.map(({ example }) => exampleMap(example))

interface GalleryProps {
  /** Makes a lab of a file. */
  readonly onChoose: (file: File, needs: string | undefined) => void
}

/** Labs to begin with: each is made by one click. */
export function Gallery({ onChoose }: GalleryProps) {
  return (
    <ul class="gallery" aria-label="Example labs">
      {gallery.map(({ example, title, about, needs }, index) => (
        <li key={example.lab}>
          <button
            type="button"
            onClick={() => onChoose(new File([example.text], `${example.lab}.lab.yaml`), needs?.long)}
          >
            <div class="thumbnail">
              <MapPicture map={maps[index]} hasStates={false} />
            </div>
            <b>{title}</b>
            <span>{about}</span>
            {needs !== undefined && <small>{needs.short}: the page says how</small>}
          </button>
        </li>
      ))}
    </ul>
  )
}

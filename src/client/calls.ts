// Made by scripts/client-types.ts from the endpoints: do not edit.

/** The body of an upload. */
export type Bytes = ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | Blob | string

/** Every call, by its method and path. */
export interface Calls {
  /** Version of the service (/v2/version) */
  'GET /v2/version': {
    reply: Version
  }
  /** Check that the version is the same (/v2/version) */
  'POST /v2/version': {
    body: VersionCheck
    reply: Version
  }
  /** Version of the service (/v2/compute/version) */
  'GET /v2/compute/version': {
    reply: Version
  }
  /** Check that the version is the same (/v2/compute/version) */
  'POST /v2/compute/version': {
    body: VersionCheck
    reply: Version
  }
  /** Network interfaces of the host, by name */
  'GET /v2/compute/network/interfaces': {
    reply: NetworkInterface[]
  }
  /** Feed of the events of all projects; each line names its project (/v2/compute/notifications) */
  'GET /v2/compute/notifications': {
    query?: { since?: string; ticket?: string; view?: 'full'; pings?: 'false' }
    reply: ReadableStream<Uint8Array>
  }
  /** Feed of the events of all projects; each line names its project (/v2/compute/notifications/ws) */
  'GET /v2/compute/notifications/ws': {
    query?: { since?: string; ticket?: string; view?: 'full'; pings?: 'false' }
    reply: never
  }
  /** Reload the configuration file, and list the changed keys */
  'POST /v2/compute/config/reload': {
    reply: Reloaded
  }
  /** What this compute can do */
  'GET /v2/compute/capabilities': {
    query?: { view?: 'full' }
    reply: Capabilities
  }
  /** Port ranges and the ports in use */
  'GET /v2/compute/network/ports': {
    reply: Ports
  }
  /** Load of the host */
  'GET /v2/compute/load': {
    reply: HostLoad
  }
  /** Check whether this machine has what labs need: what was found, and how to fix each fault */
  'GET /v2/compute/doctor': {
    reply: Diagnosis
  }
  /** Create a single-use ticket for opening a websocket from a browser */
  'POST /v2/compute/tickets': {
    reply: Ticket
  }
  /** Metrics of the labs and of the process that runs them, as JSON */
  'GET /v2/compute/metrics': {
    reply: {
      /** In base units; counters end in _total */
      name: string
      help: string
      type: 'counter' | 'gauge' | 'histogram'
      /** The buckets of a histogram are cumulative, ascending, and followed by its sum and count */
      samples: {
        /** Part of a histogram */
        suffix?: '_bucket' | '_sum' | '_count'
        labels: Record<string, string>
        /** Finite: JSON has no other numbers */
        value: number
      }[]
    }[]
  }
  /** List the projects, open and closed */
  'GET /v2/projects': {
    reply: LabProject[]
  }
  /** Create a project, and open it */
  'POST /v2/projects': {
    body: LabProjectCreate
    reply: LabProject
  }
  /** Open a GNS3 project that is on the host of the service */
  'POST /v2/projects/load': {
    query?: { trust?: 'true' | 'false' }
    body: LabProjectLoad
    reply: LabProject
  }
  /** Read a project, open or closed, even if it exists only on computes */
  'GET /v2/projects/{project_id}': {
    params: { project_id: string }
    query?: { links?: 'yes' | 'no' }
    reply: LabProject
  }
  /** Change a project, open or closed */
  'PUT /v2/projects/{project_id}': {
    params: { project_id: string }
    body: LabProjectUpdate
    reply: LabProject
  }
  /** Delete a project with its nodes and files on all its computes, even if it exists only there */
  'DELETE /v2/projects/{project_id}': {
    params: { project_id: string }
    reply: undefined
  }
  /** Count the nodes, links, drawings and snapshots of a project */
  'GET /v2/projects/{project_id}/stats': {
    params: { project_id: string }
    reply: LabStats
  }
  /** Open a project, even if it exists only on a compute */
  'POST /v2/projects/{project_id}/open': {
    params: { project_id: string }
    reply: LabProject
  }
  /** Close a project: stop its nodes, and keep its files */
  'POST /v2/projects/{project_id}/close': {
    params: { project_id: string }
    reply: undefined
  }
  /** Feed of the events of a project */
  'GET /v2/projects/{project_id}/notifications': {
    params: { project_id: string }
    query?: { since?: string; ticket?: string; view?: 'full'; pings?: 'false' }
    reply: ReadableStream<Uint8Array>
  }
  /** Feed of the events of a project, as a websocket */
  'GET /v2/projects/{project_id}/notifications/ws': {
    params: { project_id: string }
    query?: { since?: string; ticket?: string; view?: 'full'; pings?: 'false' }
    reply: never
  }
  /** Read the nodes, links and segments of a project */
  'GET /v2/projects/{project_id}/topology': {
    params: { project_id: string }
    query?: { format?: 'json' | 'yaml' }
    reply: LabTopology
  }
  /** Apply a lab file to a project; the project is created if it does not exist */
  'PUT /v2/projects/{project_id}/topology': {
    params: { project_id: string }
    query?: {
      dry_run?: 'true' | 'false'
      name?: string
      restart?: 'true' | 'false'
      recreate?: 'true' | 'false'
      delete_extra?: 'true' | 'false'
      config_from_file?: 'true' | 'false'
      take_over?: 'true' | 'false'
      trust?: 'true' | 'false'
      start?: 'true' | 'false'
    }
    body: LabApply
    reply: LabPlan
  }
  /** Run the checks of a lab file in a job; the nodes must be running */
  'POST /v2/projects/{project_id}/checks': {
    params: { project_id: string }
    query?: { trust?: 'true' | 'false' }
    body: LabCheckRun
    reply: LabJob
  }
  /** Start all nodes of a project */
  'POST /v2/projects/{project_id}/nodes/start': {
    params: { project_id: string }
    query?: { wait?: 'ready' }
    reply: undefined
  }
  /** Start a node */
  'POST /v2/projects/{project_id}/nodes/{node_id}/start': {
    params: { project_id: string; node_id: string }
    reply: LabNode
  }
  /** Stop all nodes of a project */
  'POST /v2/projects/{project_id}/nodes/stop': {
    params: { project_id: string }
    reply: undefined
  }
  /** Stop a node */
  'POST /v2/projects/{project_id}/nodes/{node_id}/stop': {
    params: { project_id: string; node_id: string }
    reply: LabNode
  }
  /** Suspend all nodes of a project */
  'POST /v2/projects/{project_id}/nodes/suspend': {
    params: { project_id: string }
    reply: undefined
  }
  /** Suspend a node */
  'POST /v2/projects/{project_id}/nodes/{node_id}/suspend': {
    params: { project_id: string; node_id: string }
    reply: LabNode
  }
  /** Reload all nodes of a project */
  'POST /v2/projects/{project_id}/nodes/reload': {
    params: { project_id: string }
    reply: undefined
  }
  /** Reload a node */
  'POST /v2/projects/{project_id}/nodes/{node_id}/reload': {
    params: { project_id: string; node_id: string }
    reply: LabNode
  }
  /** List the nodes of a project */
  'GET /v2/projects/{project_id}/nodes': {
    params: { project_id: string }
    reply: LabNode[]
  }
  /** Create a node */
  'POST /v2/projects/{project_id}/nodes': {
    params: { project_id: string }
    query?: { unique?: 'refuse' }
    body: LabNodeCreate
    reply: LabNode
  }
  /** Read a node */
  'GET /v2/projects/{project_id}/nodes/{node_id}': {
    params: { project_id: string; node_id: string }
    reply: LabNode
  }
  /** Change a node; properties that are absent stay as they are */
  'PUT /v2/projects/{project_id}/nodes/{node_id}': {
    params: { project_id: string; node_id: string }
    body: LabNodeUpdate
    reply: LabNode
  }
  /** Stop and delete a node with its links and files */
  'DELETE /v2/projects/{project_id}/nodes/{node_id}': {
    params: { project_id: string; node_id: string }
    reply: undefined
  }
  /** Copy a stopped node to another position on the map */
  'POST /v2/projects/{project_id}/nodes/{node_id}/duplicate': {
    params: { project_id: string; node_id: string }
    body: LabNodeCopy
    reply: LabNode
  }
  /** List the links of a node */
  'GET /v2/projects/{project_id}/nodes/{node_id}/links': {
    params: { project_id: string; node_id: string }
    reply: LabLink[]
  }
  /** Disconnect all clients of the console; the guest does not notice */
  'POST /v2/projects/{project_id}/nodes/{node_id}/console/reset': {
    params: { project_id: string; node_id: string }
    reply: undefined
  }
  /** List the running jobs, and those that ended in the last 15 minutes */
  'GET /v2/jobs': {
    reply: LabJob[]
  }
  /** Read a job */
  'GET /v2/jobs/{job_id}': {
    params: { job_id: string }
    reply: LabJob
  }
  /** Cancel a running job, or remove an ended one; its nodes stay as they are */
  'DELETE /v2/jobs/{job_id}': {
    params: { job_id: string }
    reply: undefined
  }
  /** Start, stop, suspend, resume or reload nodes of a project in a job */
  'POST /v2/projects/{project_id}/jobs': {
    params: { project_id: string }
    body: LabJobCreate
    reply: LabJob
  }
  /** Show your selection to the others at a project for 15 s, by the event `presence` of its feed */
  'POST /v2/projects/{project_id}/presence': {
    params: { project_id: string }
    body: LabPresenceInput
    reply: LabPresence[]
  }
  /** Read the configuration of a node: the startup script of a pc, the startup or private configuration of a router */
  'GET /v2/projects/{project_id}/nodes/{node_id}/config': {
    params: { project_id: string; node_id: string }
    query?: { name?: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Replace the configuration of a node; with If-Match only if it still has that ETag */
  'PUT /v2/projects/{project_id}/nodes/{node_id}/config': {
    params: { project_id: string; node_id: string }
    query?: { name?: string }
    body: Bytes
    reply: undefined
  }
  /** The load of each connected compute */
  'GET /v2/statistics': {
    reply: ComputeStatistics[]
  }
  /** List the links of a project */
  'GET /v2/projects/{project_id}/links': {
    params: { project_id: string }
    reply: LabLink[]
  }
  /** Link two ports; the nodes may be running */
  'POST /v2/projects/{project_id}/links': {
    params: { project_id: string }
    body: LabLinkCreate
    reply: LabLink
  }
  /** Read a link */
  'GET /v2/projects/{project_id}/links/{link_id}': {
    params: { project_id: string; link_id: string }
    reply: LabLink
  }
  /** Change the impairment, suspension or labels of a link; takes effect immediately */
  'PUT /v2/projects/{project_id}/links/{link_id}': {
    params: { project_id: string; link_id: string }
    body: LabLinkUpdate
    reply: LabLink
  }
  /** Delete a link */
  'DELETE /v2/projects/{project_id}/links/{link_id}': {
    params: { project_id: string; link_id: string }
    reply: undefined
  }
  /** Check filters for a link without applying them; the error says what is wrong, and where */
  'POST /v2/projects/{project_id}/links/{link_id}/check_filters': {
    params: { project_id: string; link_id: string }
    body: Filters
    reply: undefined
  }
  /** Enlarge a disk of a stopped machine; its image stays unchanged */
  'POST /v2/projects/{project_id}/nodes/{node_id}/resize_disk': {
    params: { project_id: string; node_id: string }
    body: Bytes
    reply: undefined
  }
  /** The first of the proposals that brings the load of the host down */
  'GET /v2/projects/{project_id}/nodes/{node_id}/dynamips/auto_idlepc': {
    params: { project_id: string; node_id: string }
    reply: IdlePc
  }
  /** List values that may be the idle PC of a router */
  'GET /v2/projects/{project_id}/nodes/{node_id}/dynamips/idlepc_proposals': {
    params: { project_id: string; node_id: string }
    reply: IdlePcProposals
  }
  /** Disconnect all console clients of a project; nodes that are not running are skipped */
  'POST /v2/projects/{project_id}/nodes/console/reset': {
    params: { project_id: string }
    reply: undefined
  }
  /** List the filters that a link can have */
  'GET /v2/projects/{project_id}/links/{link_id}/available_filters': {
    params: { project_id: string; link_id: string }
    reply: LabFilter[]
  }
  /** The console as a websocket: the scroll-back, then new output */
  'GET /v2/projects/{project_id}/nodes/{node_id}/console/ws': {
    params: { project_id: string; node_id: string }
    query?: { ticket?: string; replay?: '0' | '1'; lines?: string }
    reply: never
  }
  /** The screen as a websocket that carries RFB (VNC) in binary frames */
  'GET /v2/projects/{project_id}/nodes/{node_id}/console/vnc': {
    params: { project_id: string; node_id: string }
    query?: { ticket?: string }
    reply: never
  }
  /** The last lines of the console as text; empty without output */
  'GET /v2/projects/{project_id}/nodes/{node_id}/console/log': {
    params: { project_id: string; node_id: string }
    query?: { lines?: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Type on the console, and wait until its output matches a regular expression */
  'POST /v2/projects/{project_id}/nodes/{node_id}/console/expect': {
    params: { project_id: string; node_id: string }
    body: ConsoleExpect
    reply: ConsoleMatch
  }
  /** Wait until a node is ready; an empty body stands for the member `ready` of the node */
  'POST /v2/projects/{project_id}/nodes/{node_id}/ready': {
    params: { project_id: string; node_id: string }
    body: NodeReady
    reply: undefined
  }
  /** Capture the frames of a link into a file of the project */
  'POST /v2/projects/{project_id}/links/{link_id}/start_capture': {
    params: { project_id: string; link_id: string }
    body: LabCaptureStart
    reply: LabLink
  }
  /** Stop the capture of a link; without a capture this has no effect */
  'POST /v2/projects/{project_id}/links/{link_id}/stop_capture': {
    params: { project_id: string; link_id: string }
    reply: LabLink
  }
  /** Read the running capture of a link, from its beginning until it ends */
  'GET /v2/projects/{project_id}/links/{link_id}/pcap': {
    params: { project_id: string; link_id: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Watch the frames of a link, without a file */
  'POST /v2/projects/{project_id}/links/{link_id}/capture/stream': {
    params: { project_id: string; link_id: string }
    query?: { format?: 'pcap' | 'pcapng' }
    body: CaptureStream
    reply: ReadableStream<Uint8Array>
  }
  /** List the files of a node with their sizes */
  'GET /v2/projects/{project_id}/nodes/{node_id}/files': {
    params: { project_id: string; node_id: string }
    reply: ProjectFile[]
  }
  /** Read a file of a project */
  'GET /v2/projects/{project_id}/files/{path}': {
    params: { project_id: string; path: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Write a file of a project */
  'POST /v2/projects/{project_id}/files/{path}': {
    params: { project_id: string; path: string }
    body: Bytes
    reply: undefined
  }
  /** Read a file of a node */
  'GET /v2/projects/{project_id}/nodes/{node_id}/files/{path}': {
    params: { project_id: string; node_id: string; path: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Write a file of a node */
  'POST /v2/projects/{project_id}/nodes/{node_id}/files/{path}': {
    params: { project_id: string; node_id: string; path: string }
    body: Bytes
    reply: undefined
  }
  /** Create a template from a GNS3 appliance (*.gns3a) */
  'POST /v2/templates/import': {
    query?: { trust?: 'true' | 'false' }
    body: ApplianceInput
    reply: ApplianceImport
  }
  /** List the kinds of node, with the forms of their settings */
  'GET /v2/kinds': {
    reply: LabKind[]
  }
  /** List the templates, the built-in ones first */
  'GET /v2/templates': {
    reply: LabTemplate[]
  }
  /** Create a template; unknown members are stored as they are */
  'POST /v2/templates': {
    body: LabTemplateCreate
    reply: LabTemplate
  }
  /** Read a template */
  'GET /v2/templates/{template_id}': {
    params: { template_id: string }
    reply: LabTemplate
  }
  /** Change a template */
  'PUT /v2/templates/{template_id}': {
    params: { template_id: string }
    body: LabTemplateUpdate
    reply: LabTemplate
  }
  /** Delete a template; nodes created from it stay */
  'DELETE /v2/templates/{template_id}': {
    params: { template_id: string }
    reply: undefined
  }
  /** Copy a template under a new id */
  'POST /v2/templates/{template_id}/duplicate': {
    params: { template_id: string }
    reply: LabTemplate
  }
  /** Create a node from a template */
  'POST /v2/projects/{project_id}/templates/{template_id}': {
    params: { project_id: string; template_id: string }
    body: LabTemplateUse
    reply: LabNode
  }
  /** List the symbols */
  'GET /v2/symbols': {
    reply: LabSymbol[]
  }
  /** The symbol of each kind of node */
  'GET /v2/default_symbols': {
    reply: Record<string, string>
  }
  /** The picture of a symbol */
  'GET /v2/symbols/{symbol_id}/raw': {
    params: { symbol_id: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Upload a symbol as SVG, of at most 256 KiB */
  'POST /v2/symbols/{symbol_id}/raw': {
    params: { symbol_id: string }
    body: Bytes
    reply: undefined
  }
  /** Width and height of a symbol */
  'GET /v2/symbols/{symbol_id}/dimensions': {
    params: { symbol_id: string }
    reply: {
      width: number
      height: number
    }
  }
  /** List the drawings of a project */
  'GET /v2/projects/{project_id}/drawings': {
    params: { project_id: string }
    reply: LabDrawing[]
  }
  /** Create a drawing */
  'POST /v2/projects/{project_id}/drawings': {
    params: { project_id: string }
    body: LabDrawingCreate
    reply: LabDrawing
  }
  /** Read a drawing */
  'GET /v2/projects/{project_id}/drawings/{drawing_id}': {
    params: { project_id: string; drawing_id: string }
    reply: LabDrawing
  }
  /** Change a drawing */
  'PUT /v2/projects/{project_id}/drawings/{drawing_id}': {
    params: { project_id: string; drawing_id: string }
    body: LabDrawingUpdate
    reply: LabDrawing
  }
  /** Delete a drawing */
  'DELETE /v2/projects/{project_id}/drawings/{drawing_id}': {
    params: { project_id: string; drawing_id: string }
    reply: undefined
  }
  /** Export a project as an archive: a zip file of GNS3 2.2 (.gns3project); its nodes must be stopped */
  'GET /v2/projects/{project_id}/export': {
    params: { project_id: string }
    query?: {
      include_images?: 'yes' | 'no'
      include_snapshots?: 'yes' | 'no'
      reset_mac_addresses?: 'yes' | 'no'
      compression?: 'none' | 'zip'
      compression_level?: string
    }
    reply: ReadableStream<Uint8Array>
  }
  /** Import an archive (.gns3project) as a closed project with this id; a failed import leaves nothing behind */
  'POST /v2/projects/{project_id}/import': {
    params: { project_id: string }
    query?: { name?: string; trust?: 'true' | 'false' }
    body: Bytes
    reply: LabImported
  }
  /** Create a closed copy of a project, with new ids; its nodes must be stopped */
  'POST /v2/projects/{project_id}/duplicate': {
    params: { project_id: string }
    body: LabProjectCopy
    reply: LabProject
  }
  /** Revert the last edit of an open project */
  'POST /v2/projects/{project_id}/undo': {
    params: { project_id: string }
    reply: LabProject
  }
  /** Repeat the edit that was reverted last */
  'POST /v2/projects/{project_id}/redo': {
    params: { project_id: string }
    reply: LabProject
  }
  /** List the snapshots of a project */
  'GET /v2/projects/{project_id}/snapshots': {
    params: { project_id: string }
    reply: LabSnapshot[]
  }
  /** Take a snapshot of a project: nodes, links, drawings, files, and the memory of running machines */
  'POST /v2/projects/{project_id}/snapshots': {
    params: { project_id: string }
    body: LabSnapshotCreate
    reply: LabSnapshot
  }
  /** Delete a snapshot */
  'DELETE /v2/projects/{project_id}/snapshots/{snapshot_id}': {
    params: { project_id: string; snapshot_id: string }
    reply: undefined
  }
  /** Stop the nodes of a project and restore it; ids stay, and nodes that were running are started again */
  'POST /v2/projects/{project_id}/snapshots/{snapshot_id}/restore': {
    params: { project_id: string; snapshot_id: string }
    reply: LabProject
  }
  /** Make a lab file from a lab of containerlab, GNS3 or CML; no project is created */
  'POST /v2/imports': {
    body: LabImportInput
    reply: LabImport
  }
  /** List the VMs that nodes can use, without the linked clones of nodes */
  'GET /v2/compute/hypervisor/vms': {
    reply: VmSummary[]
  }
  /** List the emulators of the host */
  'GET /v2/compute/machine-emulator/binaries': {
    query?: { archs?: string }
    body?: EmulatorFilter
    reply: FoundProgram[]
  }
  /** List the platforms that this host can run with hardware acceleration */
  'GET /v2/compute/machine-emulator/capabilities': {
    reply: MachineCapabilities
  }
  /** List the images of iou nodes */
  'GET /v2/compute/iou/images': {
    reply: Image[]
  }
  /** List which nodes start from the images of iou nodes */
  'GET /v2/compute/iou/image_uses': {
    reply: ImageUse[]
  }
  /** Read an image, or a range of it */
  'GET /v2/compute/iou/images/{filename}': {
    params: { filename: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Store an image, whole or in parts */
  'POST /v2/compute/iou/images/{filename}': {
    params: { filename: string }
    query?: { md5sum?: string }
    body: Bytes
    reply: undefined
  }
  /** Rename an image; at a gateway, on every compute */
  'PUT /v2/compute/iou/images/{filename}': {
    params: { filename: string }
    body: ImageRename
    reply: undefined
  }
  /** Delete an image; at a gateway, on every compute */
  'DELETE /v2/compute/iou/images/{filename}': {
    params: { filename: string }
    reply: undefined
  }
  /** List the images of machine-emulator nodes */
  'GET /v2/compute/machine-emulator/images': {
    reply: Image[]
  }
  /** List which nodes start from the images of machine-emulator nodes */
  'GET /v2/compute/machine-emulator/image_uses': {
    reply: ImageUse[]
  }
  /** Read an image, or a range of it */
  'GET /v2/compute/machine-emulator/images/{filename}': {
    params: { filename: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Store an image, whole or in parts */
  'POST /v2/compute/machine-emulator/images/{filename}': {
    params: { filename: string }
    query?: { md5sum?: string }
    body: Bytes
    reply: undefined
  }
  /** Rename an image; at a gateway, on every compute */
  'PUT /v2/compute/machine-emulator/images/{filename}': {
    params: { filename: string }
    body: ImageRename
    reply: undefined
  }
  /** Delete an image; at a gateway, on every compute */
  'DELETE /v2/compute/machine-emulator/images/{filename}': {
    params: { filename: string }
    reply: undefined
  }
  /** List the disk-image tools of the host */
  'GET /v2/compute/machine-emulator/img-binaries': {
    reply: FoundProgram[]
  }
  /** Create a disk image */
  'POST /v2/compute/machine-emulator/img': {
    body: DiskCreate
    reply: undefined
  }
  /** Enlarge a disk image */
  'PUT /v2/compute/machine-emulator/img': {
    body: DiskExtend
    reply: undefined
  }
  /** List the images of dynamips nodes */
  'GET /v2/compute/dynamips/images': {
    reply: Image[]
  }
  /** List which nodes start from the images of dynamips nodes */
  'GET /v2/compute/dynamips/image_uses': {
    reply: ImageUse[]
  }
  /** Read an image, or a range of it */
  'GET /v2/compute/dynamips/images/{filename}': {
    params: { filename: string }
    reply: ReadableStream<Uint8Array>
  }
  /** Store an image, whole or in parts */
  'POST /v2/compute/dynamips/images/{filename}': {
    params: { filename: string }
    query?: { md5sum?: string }
    body: Bytes
    reply: undefined
  }
  /** Rename an image; at a gateway, on every compute */
  'PUT /v2/compute/dynamips/images/{filename}': {
    params: { filename: string }
    body: ImageRename
    reply: undefined
  }
  /** Delete an image; at a gateway, on every compute */
  'DELETE /v2/compute/dynamips/images/{filename}': {
    params: { filename: string }
    reply: undefined
  }
  /** Find the idle PC of an image */
  'POST /v2/computes/{compute_id}/auto_idlepc': {
    params: { compute_id: string }
    body: IdlePcQuestion
    reply: IdlePc
  }
  /** List the computes */
  'GET /v2/computes': {
    reply: Compute[]
  }
  /** Register a compute, and connect to it; a known compute is returned unchanged */
  'POST /v2/computes': {
    body: ComputeCreate
    reply: Compute
  }
  /** Read a compute */
  'GET /v2/computes/{compute_id}': {
    params: { compute_id: string }
    reply: Compute
  }
  /** Change a compute; the service reconnects, unless only weight or accepts_projects change */
  'PUT /v2/computes/{compute_id}': {
    params: { compute_id: string }
    body: ComputeUpdate
    reply: Compute
  }
  /** Remove a compute from the fleet; its nodes keep running */
  'DELETE /v2/computes/{compute_id}': {
    params: { compute_id: string }
    reply: undefined
  }
  /** Drain a compute: it gets no new projects, and a job moves its stopped projects to other computes */
  'POST /v2/computes/{compute_id}/drain': {
    params: { compute_id: string }
    reply: LabJob
  }
  /** Port ranges of a compute and the ports in use */
  'GET /v2/computes/{compute_id}/ports': {
    params: { compute_id: string }
    reply: Ports
  }
  /** List the images of a compute, by name */
  'GET /v2/computes/{compute_id}/{emulator}/images': {
    params: { compute_id: string; emulator: string }
    reply: {
      filename?: string
      /** The name, for kinds whose images are not files */
      image?: string
    }[]
  }
  /** Read the settings of the appliance VM */
  'GET /v2/appliancevm': {
    reply: ApplianceVm
  }
  /** Change the settings of the appliance VM, and start or stop it accordingly */
  'PUT /v2/appliancevm': {
    body: ApplianceVmUpdate
    reply: ApplianceVm
  }
  /** List the engines that can run the appliance VM */
  'GET /v2/appliancevm/engines': {
    reply: ApplianceEngine[]
  }
  /** List the VMs of an engine */
  'GET /v2/appliancevm/engines/{engine}/vms': {
    params: { engine: string }
    reply: ApplianceCandidate[]
  }
  /** Feed of the events of all projects and of all computes (/v2/notifications) */
  'GET /v2/notifications': {
    query?: { since?: string; ticket?: string; view?: 'full'; pings?: 'false' }
    reply: ReadableStream<Uint8Array>
  }
  /** Feed of the events of all projects and of all computes (/v2/notifications/ws) */
  'GET /v2/notifications/ws': {
    query?: { since?: string; ticket?: string; view?: 'full'; pings?: 'false' }
    reply: never
  }
  /** List the tokens, without their secrets */
  'GET /v2/tokens': {
    reply: AccessToken[]
  }
  /** Create a token; only this response contains its secret */
  'POST /v2/tokens': {
    body: AccessTokenCreate
    reply: NewAccessToken
  }
  /** Revoke a token */
  'DELETE /v2/tokens/{token_id}': {
    params: { token_id: string }
    reply: undefined
  }
  /** Log in: afterwards a cookie replaces the credentials */
  'POST /v2/session': {
    body: SessionCreate
    reply: Session
  }
  /** The name and the role of the client, and the end of its session */
  'GET /v2/session': {
    reply: Session
  }
  /** Log out: the session of the cookie ends, and copies of the cookie become invalid */
  'DELETE /v2/session': {
    reply: undefined
  }
  /** List the organizations */
  'GET /v2/organizations': {
    reply: Organization[]
  }
  /** Create an organization */
  'POST /v2/organizations': {
    body: OrganizationCreate
    reply: Organization
  }
  /** Read an organization */
  'GET /v2/organizations/{organization_id}': {
    params: { organization_id: string }
    reply: Organization
  }
  /** Change the name or the limits of an organization; a lower limit deletes nothing */
  'PUT /v2/organizations/{organization_id}': {
    params: { organization_id: string }
    body: OrganizationUpdate
    reply: Organization
  }
  /** Delete an organization, and revoke its tokens */
  'DELETE /v2/organizations/{organization_id}': {
    params: { organization_id: string }
    query?: { force?: 'yes' | 'no' }
    reply: undefined
  }
}

/** Version of the service */
export type Version = {
  version: string
  /** Whether the compute is in local mode */
  local: boolean
}

/** The version that a client expects */
export type VersionCheck = {
  version: string
  local?: boolean
}

/** A network interface of the host */
export type NetworkInterface = {
  id: string
  name: string
  /** First IPv4 address, empty when there is none */
  ip_address: string
  /** Its netmask, empty when there is none */
  netmask: string
  mac_address: string
  type: 'ethernet' | 'tap'
  /** true for an interface that labs seldom use (loopback, bridges of container engines) */
  special: boolean
}

/** The keys that a reload of the configuration changed */
export type Reloaded = {
  /** Keys whose new value is in effect */
  changed: string[]
  /** Keys that changed in the file and take effect after a restart */
  needs_restart: string[]
}

/** Capabilities of this compute */
export type Capabilities = {
  version: string
  /** linux, darwin or win32 */
  platform: string
  /** Kinds of node that this compute runs */
  node_types: string[]
  /** How the switch moves frames. fast: many frames a system call, on Linux; portable: node:dgram, UDP links only */
  packet_path: 'fast' | 'portable'
  labels?: Labels
  /** Changes with each boot of the host; absent if unknown */
  boot_id?: string
  /** Engine of the pcs that are started from now on: vpcs or embedded */
  pc_engine: string
}

/** Labels that it detects: `kvm` if machines run fast, `arch=x86_64`, `platform=linux` */
export type Labels = string[]

/** Port ranges and the ports in use */
export type Ports = {
  console_port_range: [number, number]
  /** Console ports in use */
  console_ports: number[]
  vnc_port_range: [number, number]
  /** Ports of VNC consoles in use */
  vnc_ports: number[]
  udp_port_range: [number, number]
  /** UDP ports in use */
  udp_ports: number[]
}

/** Load of the host, with the figures that the host knows */
export type HostLoad = {
  cpu_usage_percent: number
  memory_usage_percent: number
  /** Load of the last 1, 5 and 15 minutes, in percent of all processors */
  load_average_percent?: number[]
  /** Memory, bytes */
  memory_total?: number
  /** Memory that programs can still allocate, bytes */
  memory_free?: number
  /** Swap space, bytes */
  swap_total?: number
  /** Free swap space, bytes */
  swap_free?: number
  /** Of the disk with the projects */
  disk_usage_percent?: number
}

/** The checks of this machine for labs */
export type Diagnosis = {
  /** false when a check ended in error */
  ok: boolean
  checks: Check[]
}

/** One finding of the doctor */
export type Check = {
  /** Name of the check */
  name: string
  status: 'ok' | 'warning' | 'error'
  /** The finding */
  found: string
  fix: string | null
}

/** A single-use ticket that a browser sends as ?ticket= when it opens a websocket */
export type Ticket = {
  ticket: string
  /** Lifetime of the ticket, ms */
  expires_in_ms: number
}

/** A project: named nodes, links and drawings, open or closed */
export type LabProject = {
  /** UUID, compared without regard to case */
  project_id: string
  name: string
  status: 'opened' | 'closed'
  /** Whether the start of the service opens it */
  auto_open: boolean
  auto_close: AutoClose
  /** Whether its nodes are started when it is opened */
  auto_start: boolean
  /** Width of the map */
  scene_width: number
  /** Height of the map */
  scene_height: number
  /** Zoom of the map, percent */
  zoom: number
  /** Whether the map shows layers */
  show_layers: boolean
  /** Whether nodes snap to the grid */
  snap_to_grid: boolean
  /** Whether the map shows the grid */
  show_grid: boolean
  /** Grid of the nodes */
  grid_size: number
  /** Grid of the drawings */
  drawing_grid_size: number
  /** Whether the map shows the names of ports */
  show_interface_labels: boolean
  placement: Placement
  variables: Variable[] | null
  supplier: {
    logo: string
    url?: string
  } | null
  path: string | null
  /** Name of its file in an export */
  filename: string
  /** Number of the last edit */
  revision: number
  changed_at?: ChangedAt
  /** Ids of its computes; absent: unknown */
  compute_ids?: string[]
  counts?: LabCounts
  status_reason?: StatusReason
  archived?: Archived
  /** When the service stops its nodes (UTC, RFC 3339); absent: never */
  stop_at?: string
  /** At stop_at the service deletes the project */
  ttl_deletes?: true
  kept?: Kept
}

/** Whether it is closed when its last feed has ended, no job runs and no console is open */
export type AutoClose = boolean

/** How computes are chosen for new nodes that name none */
export type Placement = {
  /** room: the computes of the project while they have capacity, then the one with most free capacity; pack: likewise, then the fullest one that has capacity; spread: the one with the fewest nodes of the project. Default: the policy of the project, else room */
  policy?: 'room' | 'spread' | 'pack'
  /** Labels that the compute must have, in addition to those of the project. A label without a value matches any value */
  labels?: string[]
}

/** A variable of a project */
export type Variable = {
  name: string
  value?: string
}

/** Time of the last change (UTC, RFC 3339). Opening, closing, moving and archiving do not change it. Absent: unknown */
export type ChangedAt = string

/** How many nodes and links a project has; absent members are unknown */
export type LabCounts = {
  /** Number of nodes, segments included */
  nodes: number
  /** Switches, hubs, nats and clouds */
  segments: number
  links: number
  /** Running nodes, not counting segments */
  running?: number
  /** The worst verdict of its links. ok: frames or probes pass both ways; one_way: only one way; silent: nothing passed; peer_unreachable: the other end refuses, or its device is down; suspended: the link drops all frames on request; port_taken: another program has the local port or device; stopped: a node at an end does not run; detached: a port was taken over, or is gone */
  worst_verdict?: 'ok' | 'one_way' | 'silent' | 'peer_unreachable' | 'suspended' | 'port_taken' | 'stopped' | 'detached'
}

/** What is wrong with it, such as a compute that is not connected, or an archive that could not be created; absent: no known problem */
export type StatusReason = string

/** The gateway has an archive of its current state: if its compute is lost, a drain restores it on another one; absent: no archive, or not yet */
export type Archived = true

/** Members that clients of other programs sent and this service does not know, for nodes also such properties; stored unchanged */
export type Kept = Record<string, unknown>

/** Input of a new project; null or absent: default */
export type LabProjectCreate = {
  name: string
  project_id?: string | null
  path?: string | null
  compute_id?: string | null
  auto_open?: boolean | null
  auto_close?: boolean | null
  auto_start?: boolean | null
  scene_width?: number | null
  scene_height?: number | null
  zoom?: number | null
  show_layers?: boolean | null
  snap_to_grid?: boolean | null
  show_grid?: boolean | null
  grid_size?: number | null
  drawing_grid_size?: number | null
  show_interface_labels?: boolean | null
  placement?: Placement | null
  variables?: Variable[] | null
  supplier?: {
    logo: string
    url?: string
  } | null
  kept?: Kept | null
  status?: 'opened' | 'closed' | null
  filename?: string | null
  revision?: number | null
  changed_at?: string | null
  compute_ids?: string[] | null
  counts?: LabCounts | null
  status_reason?: string | null
  archived?: true | null
  stop_at?: string | null
  ttl_deletes?: true | null
}

/** Location of a GNS3 project */
export type LabProjectLoad = {
  /** Path of the file *.gns3 on the host of the service */
  path: string
}

/** Changes to a project; null or absent members stay unchanged */
export type LabProjectUpdate = {
  name?: string | null
  ttl_s?: number | null
  ttl_deletes?: boolean | null
  auto_open?: boolean | null
  auto_close?: boolean | null
  auto_start?: boolean | null
  scene_width?: number | null
  scene_height?: number | null
  zoom?: number | null
  show_layers?: boolean | null
  snap_to_grid?: boolean | null
  show_grid?: boolean | null
  grid_size?: number | null
  drawing_grid_size?: number | null
  show_interface_labels?: boolean | null
  placement?: Placement | null
  variables?: Variable[] | null
  supplier?: {
    logo: string
    url?: string
  } | null
  kept?: Kept | null
  project_id?: string | null
  status?: 'opened' | 'closed' | null
  path?: string | null
  filename?: string | null
  revision?: number | null
  changed_at?: string | null
  compute_ids?: string[] | null
  counts?: LabCounts | null
  status_reason?: string | null
  archived?: true | null
  stop_at?: string | null
}

/** Numbers of nodes, links, drawings and snapshots of a project */
export type LabStats = {
  /** Number of nodes, segments included */
  nodes: number
  /** Switches, hubs, nats and clouds */
  segments: number
  links: number
  /** Running nodes, not counting segments */
  running: number
  drawings: number
  snapshots: number
}

/** The nodes and links of a project */
export type LabTopology = {
  /** Number of the last edit of the project */
  revision: number
  /** The nodes that are not segments */
  nodes: LabNode[]
  links: LabLink[]
  /** The nodes of the kinds switch, hub, nat and cloud */
  segments: LabNode[]
}

/** A node of a project */
export type LabNode = {
  /** UUID, compared without regard to case */
  node_id: string
  /** UUID, compared without regard to case */
  project_id: string
  /** The compute that runs it */
  compute_id: string
  node_type: NodeType
  template_id: string | null
  name: string
  /** State of the node */
  status: 'started' | 'stopped' | 'suspended'
  status_reason: string | null
  console: number | null
  /** Type of its console, one of the types of its kind */
  console_type: string
  console_host: string | null
  command_line: string | null
  node_directory: string | null
  /** Left edge on the map */
  x: number
  /** Upper edge on the map */
  y: number
  /** Layer of the map */
  z: number
  /** Whether the map refuses to move it, and the service to delete it */
  locked: boolean
  symbol: string | null
  label: LabLabel | null
  /** Names of ports: {0} is the number of the port, {1} the number of the segment; {port1} counts from 1 */
  port_name_format: string
  /** Ports of a segment; 0: none */
  port_segment_size: number
  first_port_name: string | null
  custom_adapters: {
    adapter_number: number
    /** Name of the port */
    port_name?: string
    /** Model of the adapter */
    adapter_type?: string
    mac_address?: string | null
  }[]
  /** Whether clients open its console when it starts */
  console_auto_start: boolean
  /** Names of nodes that must be ready before it starts */
  after: string[]
  ready: LabReady | null
  /** Texts that users attached to it, by key */
  labels: Record<string, string>
  placement: Placement
  /** Width of its symbol */
  width: number
  /** Height of its symbol */
  height: number
  ports: LabPort[]
  properties: Properties
  kept?: Kept
}

/** Kind of the node: pc, iou, hypervisor, machine-emulator, dynamips, switch, hub, cloud, nat; any other value creates a placeholder */
export type NodeType = string

/** A text on the map */
export type LabLabel = {
  /** The text */
  text: string
  style?: string | null
  x?: number | null
  y?: number | null
  /** Degrees */
  rotation?: number
}

/** When a node is ready: all given conditions must hold */
export type LabReady = {
  /** Regular expression that its console must show */
  console?: string
  /** Typed on its console until that matches, such as "\r" */
  press?: string
  /** TCP port of the host that must accept connections */
  tcp?: number
  /** Time after its start */
  seconds?: number
  /** Longest wait; default 300 */
  within_s?: number
}

/** A port of a node */
export type LabPort = {
  name: string
  short_name: string
  adapter_number: number
  port_number: number
  link_type: 'ethernet' | 'serial'
  /** Link types of captures, by their display names */
  data_link_types: Record<string, string>
  mac_address?: string | null
  adapter_type?: string | null
}

/** Settings of the kind: the fields of its node on the compute interface */
export type Properties = Record<string, unknown>

/** A link between two ports */
export type LabLink = {
  /** UUID, compared without regard to case */
  link_id: string
  /** UUID, compared without regard to case */
  project_id: string
  link_type: 'ethernet' | 'serial'
  /** Its two ends */
  nodes: LabLinkEnd[]
  name: string | null
  filters: Filters
  /** Impairment of frames from the first end to the second; applied after `filters` */
  filters_ab: {
    frequency_drop?: FrequencyDrop
    /** percent */
    packet_loss?: number[]
    delay?: Delay
    /** percent */
    corrupt?: number[]
    bpf?: Bpf
    rate?: Rate
    /** percent */
    duplicate?: number[]
    reorder?: Reorder
  }
  /** Impairment of frames from the second end to the first; applied after `filters` */
  filters_ba: {
    frequency_drop?: FrequencyDrop
    /** percent */
    packet_loss?: number[]
    delay?: Delay
    /** percent */
    corrupt?: number[]
    bpf?: Bpf
    rate?: Rate
    /** percent */
    duplicate?: number[]
    reorder?: Reorder
  }
  /** true: the link is down; frames are dropped in both directions */
  suspend: boolean
  /** How the map draws it */
  link_style: Record<string, unknown>
  kept?: Kept
  capturing: boolean
  capture_file_name: string | null
  capture_file_path: string | null
  capture_compute_id: string | null
  verdict: 'ok' | 'one_way' | 'silent' | 'peer_unreachable' | 'suspended' | 'port_taken' | 'stopped' | 'detached' | null
  verdict_reason: string | null
  traffic_ab: LinkTraffic | null
  traffic_ba: LinkTraffic | null
}

/** An end of a link */
export type LabLinkEnd = {
  /** UUID, compared without regard to case */
  node_id: string
  /** Number of the adapter */
  adapter_number: number
  /** Number of the port of the adapter */
  port_number: number
  label?: LabLabel | null
}

/** Impairment of a link, in both directions. Frames pass the filters in the order of the members */
export type Filters = {
  frequency_drop?: FrequencyDrop
  /** percent */
  packet_loss?: number[]
  delay?: Delay
  /** percent */
  corrupt?: number[]
  bpf?: Bpf
  rate?: Rate
  /** percent */
  duplicate?: number[]
  reorder?: Reorder
}

/** [n]: drops every n-th frame, -1: all of them */
export type FrequencyDrop = number[]

/** latency in ms, jitter in ms */
export type Delay = number[]

/** [expressions, one per line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given */
export type Bpf = string[]

/** kbit/s, burst in KB (16), longest wait in ms (100) */
export type Rate = number[]

/** percent, ms held back (10) */
export type Reorder = number[]

/** One direction of a link */
export type LinkTraffic = {
  /** Frames that arrived, since the ports were opened */
  frames: number
  /** Their bytes */
  bytes: number
  /** Frames that were dropped, for any reason */
  dropped: number
  /** Between the last two readings; 0 at the first one */
  frames_per_s: number
  /** Likewise */
  bits_per_s: number
}

/** A lab file, with the files that it names */
export type LabApply = {
  /** The lab file: YAML 1.2 or JSON */
  document: string
  files?: Files
  vars?: Vars
  /** Restart running nodes for changes that need it */
  restart?: boolean
  /** Recreate nodes for changes that need it; their disks are lost */
  recreate?: boolean
  /** Delete nodes that have left the file, and links of others at ports of links of the file */
  delete_extra?: boolean
  /** Where a configuration was changed in the file and on the node, that of the file wins */
  config_from_file?: boolean
  /** Use a project that another user or another way has made */
  take_over?: boolean
  /** Trust the file: let it run programs and open files of the host; only for local clients and administrators */
  trust?: boolean
  /** Start the nodes afterwards, in the order that the file says */
  start?: boolean
  /** Time after which the service stops its nodes, s; 0: never. Stopping all nodes or closing the project cancels it */
  ttl_s?: number
  /** With ttl_s: the service then deletes the project with its disks. Default: the current value, else false */
  ttl_deletes?: boolean
}

/** Contents by path, with the paths as written in the lab file; the service does not open these files */
export type Files = Record<string, string>

/** Values that replace those in `vars` of the lab file */
export type Vars = Record<string, string>

/** What a lab file changes in a project */
export type LabPlan = {
  /** UUID, compared without regard to case */
  project_id: string
  lab: string
  /** The revision of the project that was compared; 0: a new one */
  revision: number
  /** In the order in which they are run */
  steps: LabPlanStep[]
  withheld: LabWithheldStep[]
  /** Objects that are not in the file, and stay */
  extra: {
    what: 'node' | 'segment' | 'link' | 'config'
    name: string
    because?: string
  }[]
  /** The service ended in the middle of an earlier apply: this one does the rest */
  interrupted?: true
  /** When the service stops the nodes (UTC, RFC 3339) */
  stop_at?: string
  /** The job that runs the steps */
  job_id?: string
}

/** A step from the project as it is to what its lab file says */
export type LabPlanStep = {
  do: 'create' | 'update' | 'delete' | 'start'
  what: 'node' | 'link' | 'segment' | 'project'
  /** Name of the object; of a link without a name its two ends */
  name: string
  how: How
  /** What differs, or why the step is needed */
  because?: string
}

/** live: nothing else is disturbed; restart: the node is stopped and started again; recreate: its disk is lost */
export type How = 'live' | 'restart' | 'recreate'

/** A step that is taken only with an option */
export type LabWithheldStep = {
  do: 'create' | 'update' | 'delete' | 'start'
  what: 'node' | 'link' | 'segment' | 'project'
  /** Name of the object; of a link without a name its two ends */
  name: string
  how: How
  /** What differs, or why the step is needed */
  because?: string
  /** The option */
  flag: 'restart' | 'recreate' | 'delete_extra' | 'config_from_file'
}

/** A lab file whose checks are run */
export type LabCheckRun = {
  /** The lab file: YAML 1.2 or JSON */
  document: string
  files?: Files
  vars?: Vars
}

/** Work on a project, or on the projects of a compute */
export type LabJob = {
  /** UUID, compared without regard to case */
  job_id: string
  project_id: string | null
  /** apply: applies a lab file; check: runs the checks of one; drain: moves the projects of a compute to others */
  action: 'start' | 'stop' | 'suspend' | 'resume' | 'reload' | 'apply' | 'check' | 'drain'
  /** Of a drain: the compute */
  compute_id?: string
  /** failed: at least one node, step or check has failed */
  status: 'running' | 'done' | 'failed' | 'cancelled'
  reason: string | null
  /** Time in UTC (RFC 3339) */
  started_at: string
  ended_at: string | null
  /** Number of nodes, steps, checks or projects of the job */
  total: number
  done: number
  failed: number
  skipped: number
  /** Nodes that are not done: the failed ones first, at most 100 */
  nodes: LabJobNode[]
  /** Of an apply: steps that are not done, the failed ones first, at most 100 */
  steps?: LabJobStep[]
  checks?: LabCheckResult[]
  /** Of a drain: the projects that have stayed or wait first, then those that were moved; at most 100 */
  projects?: LabJobProject[]
  /** Of an apply: the job that starts the nodes */
  start_job_id?: string
}

/** A node of a job */
export type LabJobNode = {
  /** UUID, compared without regard to case */
  node_id: string
  name: string
  /** unready: started, but not ready yet; skipped: a node that had to be ready before it has failed */
  state: 'waiting' | 'asked' | 'unready' | 'done' | 'failed' | 'skipped' | 'cancelled'
  reason: string | null
}

/** A step of a job that applies a lab file */
export type LabJobStep = {
  do: 'create' | 'update' | 'delete' | 'start'
  what: 'node' | 'link' | 'segment' | 'project'
  /** Name of the object; of a link without a name its two ends */
  name: string
  how: How
  /** What differs, or why the step is needed */
  because?: string
  /** undone: it was done, and then reverted because another step failed */
  state: 'waiting' | 'running' | 'done' | 'failed' | 'undone' | 'cancelled'
  reason: string | null
}

/** The result of a check */
export type LabCheckResult = {
  name: string
  state: 'waiting' | 'running' | 'ok' | 'failed' | 'cancelled'
  /** How long it took */
  seconds: number
  saw: string | null
}

/** A project of a drain */
export type LabJobProject = {
  /** UUID, compared without regard to case */
  project_id: string
  name: string
  /** skipped: it stays where it is, as `reason` says */
  state: 'waiting' | 'moving' | 'done' | 'failed' | 'skipped' | 'cancelled'
  reason: string | null
  compute_id: string | null
}

/** Input of a new node */
export type LabNodeCreate = {
  name: string
  node_type: NodeType
  node_id?: string | null
  compute_id?: string | null
  template_id?: string | null
  x?: number | null
  y?: number | null
  z?: number | null
  locked?: boolean | null
  symbol?: string | null
  label?: LabLabel | null
  port_name_format?: string | null
  port_segment_size?: number | null
  first_port_name?: string | null
  custom_adapters?:
    | {
        adapter_number: number
        /** Name of the port */
        port_name?: string
        /** Model of the adapter */
        adapter_type?: string
        mac_address?: string | null
      }[]
    | null
  console_auto_start?: boolean | null
  after?: string[] | null
  ready?: LabReady | null
  labels?: Record<string, string> | null
  placement?: Placement | null
  console?: number | null
  console_type?: string | null
  properties?: Properties
  kept?: Kept | null
  project_id?: string | null
  status?: 'started' | 'stopped' | 'suspended' | null
  status_reason?: string | null
  console_host?: string | null
  command_line?: string | null
  node_directory?: string | null
  width?: number | null
  height?: number | null
  ports?: LabPort[] | null
}

/** Changes to a node; null or absent members stay unchanged */
export type LabNodeUpdate = {
  name?: string | null
  x?: number | null
  y?: number | null
  z?: number | null
  locked?: boolean | null
  symbol?: string | null
  label?: LabLabel | null
  port_name_format?: string | null
  port_segment_size?: number | null
  first_port_name?: string | null
  custom_adapters?:
    | {
        adapter_number: number
        /** Name of the port */
        port_name?: string
        /** Model of the adapter */
        adapter_type?: string
        mac_address?: string | null
      }[]
    | null
  console_auto_start?: boolean | null
  after?: string[] | null
  ready?: LabReady | null
  labels?: Record<string, string> | null
  placement?: Placement | null
  console?: number | null
  console_type?: string | null
  properties?: Properties
  kept?: Kept | null
  node_id?: string | null
  project_id?: string | null
  compute_id?: string | null
  node_type?: string | null
  template_id?: string | null
  status?: 'started' | 'stopped' | 'suspended' | null
  status_reason?: string | null
  console_host?: string | null
  command_line?: string | null
  node_directory?: string | null
  width?: number | null
  height?: number | null
  ports?: LabPort[] | null
}

/** Where the copy goes */
export type LabNodeCopy = {
  x: number
  y: number
  z?: number
}

/** Work on nodes of a project */
export type LabJobCreate = {
  action: 'start' | 'stop' | 'suspend' | 'resume' | 'reload'
  /** Ids or names; absent: all nodes */
  nodes?: string[]
  /** How many nodes may start at the same time */
  at_once?: number
  /** CPU load of a compute, percent, above which starts wait; default 75 */
  load_below?: number
  /** When a node fails: start no further nodes, or skip only the nodes that come after it */
  give_up?: 'stop' | 'go-on'
}

/** The selection of the client */
export type LabPresenceInput = {
  selection: Selection
  client?: string | null
}

/** Ids of the selected nodes, links and drawings */
export type Selection = string[]

/** The selection of a client at a project */
export type LabPresence = {
  /** Name of the token or the user */
  name: string
  /** Distinguishes windows that use the same credential */
  client: string
  selection: Selection
  /** false in the event at its end */
  present: boolean
}

/** The load of a compute */
export type ComputeStatistics = {
  compute_id: string
  compute_name: string
  statistics: {
    /** Percent */
    cpu_usage_percent: number
    /** Percent */
    memory_usage_percent: number
  }
}

/** Input of a new link */
export type LabLinkCreate = {
  link_id?: string | null
  /** The two ends */
  nodes: [LabLinkEnd | string, LabLinkEnd | string]
  name?: string | null
  filters?: Filters | null
  filters_ab?: {
    /** [n]: drops every n-th frame, -1: all of them */
    frequency_drop?: number[]
    /** percent */
    packet_loss?: number[]
    /** latency in ms, jitter in ms */
    delay?: number[]
    /** percent */
    corrupt?: number[]
    /** [expressions, one per line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given */
    bpf?: string[]
    /** kbit/s, burst in KB (16), longest wait in ms (100) */
    rate?: number[]
    /** percent */
    duplicate?: number[]
    /** percent, ms held back (10) */
    reorder?: number[]
  } | null
  filters_ba?: {
    /** [n]: drops every n-th frame, -1: all of them */
    frequency_drop?: number[]
    /** percent */
    packet_loss?: number[]
    /** latency in ms, jitter in ms */
    delay?: number[]
    /** percent */
    corrupt?: number[]
    /** [expressions, one per line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given */
    bpf?: string[]
    /** kbit/s, burst in KB (16), longest wait in ms (100) */
    rate?: number[]
    /** percent */
    duplicate?: number[]
    /** percent, ms held back (10) */
    reorder?: number[]
  } | null
  suspend?: boolean | null
  link_style?: Record<string, unknown> | null
  kept?: Kept | null
  project_id?: string | null
  link_type?: 'ethernet' | 'serial' | null
  capturing?: boolean | null
  capture_file_name?: string | null
  capture_file_path?: string | null
  capture_compute_id?: string | null
  verdict?:
    | 'ok'
    | 'one_way'
    | 'silent'
    | 'peer_unreachable'
    | 'suspended'
    | 'port_taken'
    | 'stopped'
    | 'detached'
    | null
  verdict_reason?: string | null
  traffic_ab?: LinkTraffic | null
  traffic_ba?: LinkTraffic | null
}

/** Changes to a link; null or absent members stay unchanged */
export type LabLinkUpdate = {
  nodes?: LabLinkEnd[] | null
  name?: string | null
  filters?: Filters | null
  filters_ab?: {
    /** [n]: drops every n-th frame, -1: all of them */
    frequency_drop?: number[]
    /** percent */
    packet_loss?: number[]
    /** latency in ms, jitter in ms */
    delay?: number[]
    /** percent */
    corrupt?: number[]
    /** [expressions, one per line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given */
    bpf?: string[]
    /** kbit/s, burst in KB (16), longest wait in ms (100) */
    rate?: number[]
    /** percent */
    duplicate?: number[]
    /** percent, ms held back (10) */
    reorder?: number[]
  } | null
  filters_ba?: {
    /** [n]: drops every n-th frame, -1: all of them */
    frequency_drop?: number[]
    /** percent */
    packet_loss?: number[]
    /** latency in ms, jitter in ms */
    delay?: number[]
    /** percent */
    corrupt?: number[]
    /** [expressions, one per line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given */
    bpf?: string[]
    /** kbit/s, burst in KB (16), longest wait in ms (100) */
    rate?: number[]
    /** percent */
    duplicate?: number[]
    /** percent, ms held back (10) */
    reorder?: number[]
  } | null
  suspend?: boolean | null
  link_style?: Record<string, unknown> | null
  kept?: Kept | null
  link_id?: string | null
  project_id?: string | null
  link_type?: 'ethernet' | 'serial' | null
  capturing?: boolean | null
  capture_file_name?: string | null
  capture_file_path?: string | null
  capture_compute_id?: string | null
  verdict?:
    | 'ok'
    | 'one_way'
    | 'silent'
    | 'peer_unreachable'
    | 'suspended'
    | 'port_taken'
    | 'stopped'
    | 'detached'
    | null
  verdict_reason?: string | null
  traffic_ab?: LinkTraffic | null
  traffic_ba?: LinkTraffic | null
}

/** The idle PC that was found */
export type IdlePc = {
  /** The value, as `0x60008120` */
  idlepc: string
}

/** Values that may be the idle PC of the image */
export type IdlePcProposals = string[]

/** A filter of links, for a form */
export type LabFilter = {
  /** Its name in `filters` */
  type: string
  name: string
  description: string
  /** The values of its list in `filters`, in this order */
  parameters: {
    name: string
    type: 'int' | 'text'
    minimum?: number
    maximum?: number
    unit?: string
  }[]
}

/** Text to type on a console, and output to wait for */
export type ConsoleExpect = {
  /** Typed verbatim: end a line with \n or \r */
  send?: string
  /** Regular expression in the syntax of RE2 */
  expect: string
  /** The node echoes what is typed: only output after the first echo of `send` is searched, and further echoes are ignored */
  echoes?: boolean
  /** Longest wait, s */
  within_s?: number
}

/** Output that was waited for */
export type ConsoleMatch = {
  /** The text that matches */
  matched: string
  /** The output before it, at most 64 KiB */
  before: string
  /** The groups of the expression; null: not part of the match */
  groups: (string | null)[]
}

/** What to wait for; all that is named must be so */
export type NodeReady = {
  /** Regular expression in the syntax of RE2 */
  console?: string
  /** TCP port of the host that must accept connections */
  tcp?: number
  /** Time from now */
  seconds?: number
  /** Longest wait, s */
  within_s?: number
}

/** File and link type of a capture */
export type LabCaptureStart = {
  capture_file_name?: string | null
  data_link_type?: string | null
}

/** A capture without a file */
export type CaptureStream = {
  data_link_type?: DataLinkType
  /** Tell frames that the client lost, as it was too slow: by records without bytes, whose original length is the number of frames lost there. pcapng always has them in interface statistics (isb_ifdrop) */
  losses?: boolean
}

/** The type of the frames: DLT_EN10MB (the default) on an Ethernet port, another one on a serial port (default: DLT_C_HDLC) */
export type DataLinkType = 'DLT_EN10MB' | 'DLT_PPP_SERIAL' | 'DLT_ATM_RFC1483' | 'DLT_C_HDLC' | 'DLT_FRELAY'

/** A file of a project */
export type ProjectFile = {
  /** Path relative to the project, separated by / */
  path: string
  /** 32 hexadecimal digits; absent with sums=false */
  md5sum?: string
  /** Bytes; with sums=false */
  size?: number
}

/** An appliance of GNS3 */
export type ApplianceInput = {
  /** The appliance, a file *.gns3a */
  text: string
  version?: string | null
  name?: string | null
}

/** A template created from an appliance, and the images that it needs */
export type ApplianceImport = {
  template: LabTemplate
  version: string | null
  /** All versions of the appliance */
  versions: string[]
  images: {
    /** The setting of the template that names it */
    setting: string
    /** Its name in the appliance */
    filename: string
    md5: string | null
    size: number | null
    from: string | null
    /** Its name here: upload it by this name when it is missing */
    image: string
    /** No connected compute has it */
    is_missing: boolean
  }[]
  /** What the template leaves out, by its position in the given text */
  left_out: {
    path: string
    line: number
    column: number
    message: string
  }[]
}

/** A named kind with settings, from which nodes are created */
export type LabTemplate = {
  /** UUID, compared without regard to case */
  template_id: string
  name: string
  /** Kind of the nodes */
  template_type: string
  compute_id: string | null
  /** Group of the palette: guest, router, switch, firewall */
  category: string
  /** Names of nodes: {name} stands for the template, {0} for the next free number */
  default_name_format: string
  /** Symbol of the nodes */
  symbol: string
  /** Notes for users of its nodes */
  usage: string
  /** Whether it is part of Patchbay; such a template cannot be changed */
  builtin: boolean
}

/** A kind of node, and the form of its settings */
export type LabKind = {
  /** Its value in `node_type` */
  name: string
  /** The noun for a node of the kind, for use in a sentence */
  noun: string
  /** Whether its nodes run as soon as they are created */
  is_always_on: boolean
  can_be_suspended: boolean
  /** Whether its nodes start from images */
  has_images: boolean
  /** The possible forms of its console */
  consoles: ('text' | 'screen')[]
  /** Names of its configurations, the default first */
  configs: string[]
  /** Possible values of `console_type` */
  console_types: string[]
  /** JSON Schema of `properties` in a change of a node, without configurations, which have their own path */
  settings: Record<string, unknown>
}

/** Input of a new template */
export type LabTemplateCreate = {
  template_id?: string | null
  name: string
  /** Kind of the nodes */
  template_type: string
  compute_id?: string | null
  category?: string | null
  default_name_format?: string | null
  symbol?: string | null
  usage?: string | null
}

/** Changes to a template; absent members stay unchanged */
export type LabTemplateUpdate = {
  name?: string | null
  compute_id?: string | null
  category?: string | null
  default_name_format?: string | null
  symbol?: string | null
  usage?: string | null
}

/** Position and compute of the new node */
export type LabTemplateUse = {
  x: number
  y: number
  compute_id?: string | null
  name?: string | null
}

/** A picture of nodes on the map */
export type LabSymbol = {
  symbol_id: string
  filename: string
  builtin: boolean
  theme: string
}

/** A drawing on the map: a text, a rectangle, a picture */
export type LabDrawing = {
  /** UUID, compared without regard to case */
  drawing_id: string
  /** UUID, compared without regard to case */
  project_id: string
  /** The drawing as SVG. Clients must show it as an image, not as a document: it may contain scripts */
  svg: string
  x: number
  y: number
  /** Layer of the map */
  z: number
  /** Degrees */
  rotation: number
  /** Whether the map refuses to move it, and the service to delete it */
  locked: boolean
  kept?: Kept
}

/** Input of a new drawing */
export type LabDrawingCreate = {
  drawing_id?: string | null
  svg?: string | null
  x?: number | null
  y?: number | null
  z?: number | null
  rotation?: number | null
  locked?: boolean | null
  kept?: Kept | null
  project_id?: string | null
}

/** Changes to a drawing; null or absent members stay unchanged */
export type LabDrawingUpdate = {
  svg?: string | null
  x?: number | null
  y?: number | null
  z?: number | null
  rotation?: number | null
  locked?: boolean | null
  kept?: Kept | null
  drawing_id?: string | null
  project_id?: string | null
}

/** A project that was made of an archive */
export type LabImported = {
  /** UUID, compared without regard to case */
  project_id: string
  name: string
  status: 'opened' | 'closed'
  /** Whether the start of the service opens it */
  auto_open: boolean
  auto_close: AutoClose
  /** Whether its nodes are started when it is opened */
  auto_start: boolean
  /** Width of the map */
  scene_width: number
  /** Height of the map */
  scene_height: number
  /** Zoom of the map, percent */
  zoom: number
  /** Whether the map shows layers */
  show_layers: boolean
  /** Whether nodes snap to the grid */
  snap_to_grid: boolean
  /** Whether the map shows the grid */
  show_grid: boolean
  /** Grid of the nodes */
  grid_size: number
  /** Grid of the drawings */
  drawing_grid_size: number
  /** Whether the map shows the names of ports */
  show_interface_labels: boolean
  placement: Placement
  variables: Variable[] | null
  supplier: {
    logo: string
    url?: string
  } | null
  path: string | null
  /** Name of its file in an export */
  filename: string
  /** Number of the last edit */
  revision: number
  changed_at?: ChangedAt
  /** Ids of its computes; absent: unknown */
  compute_ids?: string[]
  counts?: LabCounts
  status_reason?: StatusReason
  archived?: Archived
  /** When the service stops its nodes (UTC, RFC 3339); absent: never */
  stop_at?: string
  /** At stop_at the service deletes the project */
  ttl_deletes?: true
  kept?: Kept
  /** Settings of the archive that were left out */
  left_out: string[]
}

/** Input of a copy of a project */
export type LabProjectCopy = {
  name: string
  path?: string | null
  /** Whether the nodes of the copy get other MAC addresses */
  reset_mac_addresses?: boolean
}

/** A stored state of a project: nodes, links, drawings and files */
export type LabSnapshot = {
  /** UUID, compared without regard to case */
  snapshot_id: string
  /** UUID, compared without regard to case */
  project_id: string
  name: string
  /** Seconds since 1970 */
  created_at: number
  /** Number of nodes that were running, not counting segments; a restore starts all of them again */
  running: number
  /** Size of its files in bytes; blocks may be shared with the project */
  size: number
}

/** Input of a new snapshot */
export type LabSnapshotCreate = {
  name: string
}

/** A lab of another program */
export type LabImportInput = {
  /** The file, YAML or JSON */
  text: string
  format?: 'gns3' | 'containerlab' | 'cml' | null
  annotations?: string | null
}

/** A lab file created from a lab of another program */
export type LabImport = {
  /** The format that was read */
  format: 'gns3' | 'containerlab' | 'cml'
  /** Name of the lab */
  lab: string
  /** The lab file */
  text: string
  /** Images that the nodes need; none is in the file */
  images: {
    /** Kind of the nodes */
    kind: string
    /** Its name in the lab file */
    image: string
    /** The digest that it must have */
    md5?: string
    nodes: string[]
  }[]
  /** What the lab file leaves out or has in another form, by its position in the given text */
  left_out: {
    /** Such as topology.nodes.r1.binds */
    path: string
    line: number
    column: number
    message: string
  }[]
}

/** A VM that a node can use */
export type VmSummary = {
  vmname: string
  /** Memory, MB */
  ram: number
}

/** Selects emulators */
export type EmulatorFilter = {
  /** Only emulators of these platforms; absent: all */
  archs?: (
    | 'aarch64'
    | 'alpha'
    | 'arm'
    | 'cris'
    | 'i386'
    | 'lm32'
    | 'm68k'
    | 'microblaze'
    | 'microblazeel'
    | 'mips'
    | 'mips64'
    | 'mips64el'
    | 'mipsel'
    | 'moxie'
    | 'or32'
    | 'ppc'
    | 'ppc64'
    | 'ppcemb'
    | 's390x'
    | 'sh4'
    | 'sh4eb'
    | 'sparc'
    | 'sparc64'
    | 'tricore'
    | 'unicore32'
    | 'x86_64'
    | 'xtensa'
    | 'xtensaeb'
    | 'riscv32'
    | 'riscv64'
    | 'loongarch64'
    | 'null'
    | ''
  )[]
}

/** A program of the host */
export type FoundProgram = {
  /** Absolute path */
  path: string
  /** The version that the program reports */
  version: string
}

/** The acceleration of machines on this compute */
export type MachineCapabilities = {
  /** Platforms that KVM accelerates; empty when it cannot be used */
  kvm: string[]
}

/** An image that nodes of a kind can be given */
export type Image = {
  /** Name of the file, without directories */
  filename: string
  /** Path relative to its directory of images: the name for nodes */
  path: string
  /** 32 hexadecimal digits */
  md5sum: string
  /** 64 hexadecimal digits. At a gateway absent for images of computes of earlier versions */
  sha256?: string
  /** Bytes */
  filesize: number
}

/** Where an image is, and which nodes need it */
export type ImageUse = {
  /** Path relative to its directory of images: the name for nodes */
  path: string
  /** Its nodes in open projects that the client sees; absent: a compute of an earlier version does not report them */
  used_by?: ImageUsers[]
  /** Only at a gateway: ids of the connected computes that have an image of this name */
  compute_ids?: string[]
}

/** Nodes of an open project that start from an image */
export type ImageUsers = {
  /** UUID, compared without regard to case */
  project_id: string
  /** Their names */
  nodes: string[]
}

/** The new name of an image */
export type ImageRename = {
  /** Name, with the directory if the image is in one */
  path: string
}

/** A new disk image, with the options of its format */
export type DiskCreate =
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'qcow2'
      /** Size of the disk, MB (MiB) */
      size: number
      preallocation?: 'off' | 'metadata' | 'falloc' | 'full' | null
      cluster_size?:
        | 512
        | 1024
        | 2048
        | 4096
        | 8192
        | 16384
        | 32768
        | 65536
        | 131072
        | 262144
        | 524288
        | 1048576
        | 2097152
        | null
      refcount_bits?: 1 | 2 | 4 | 8 | 16 | 32 | 64 | null
      lazy_refcounts?: 'on' | 'off' | null
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'qcow'
      /** Size of the disk, MB (MiB) */
      size: number
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'raw'
      /** Size of the disk, MB (MiB) */
      size: number
      preallocation?: 'off' | 'falloc' | 'full' | null
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'vmdk'
      /** Size of the disk, MB (MiB) */
      size: number
      subformat?:
        | 'monolithicSparse'
        | 'monolithicFlat'
        | 'twoGbMaxExtentSparse'
        | 'twoGbMaxExtentFlat'
        | 'streamOptimized'
        | null
      adapter_type?: 'ide' | 'lsilogic' | 'buslogic' | 'legacyESX' | null
      zeroed_grain?: 'on' | 'off' | null
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'vdi'
      /** Size of the disk, MB (MiB) */
      size: number
      static?: 'on' | 'off' | null
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'vpc'
      /** Size of the disk, MB (MiB) */
      size: number
      subformat?: 'dynamic' | 'fixed' | null
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'qed'
      /** Size of the disk, MB (MiB) */
      size: number
      cluster_size?:
        | 4096
        | 8192
        | 16384
        | 32768
        | 65536
        | 131072
        | 262144
        | 524288
        | 1048576
        | 2097152
        | 4194304
        | 8388608
        | 16777216
        | 33554432
        | 67108864
        | null
      table_size?: 1 | 2 | 4 | 8 | 16 | null
    }
  | {
      qemu_img?: string | null
      /** Name among the images, at most one directory deep; in local mode also an absolute path */
      path: string
      format: 'parallels'
      /** Size of the disk, MB (MiB) */
      size: number
      cluster_size?:
        | 65536
        | 131072
        | 262144
        | 524288
        | 1048576
        | 2097152
        | 4194304
        | 8388608
        | 16777216
        | 33554432
        | 67108864
        | null
    }

/** A disk image, and how much it grows */
export type DiskExtend = {
  qemu_img?: string | null
  /** Name among the images, at most one directory deep; in local mode also an absolute path */
  path: string
  /** MB (MiB) to add */
  extend: number
}

/** The image of a search for an idle PC */
export type IdlePcQuestion = {
  platform: Platform2
  image: Image2
  /** Memory, MB. Default: the value of the platform */
  ram: number
}

/** The router that is emulated */
export type Platform2 = 'c1700' | 'c2600' | 'c2691' | 'c3600' | 'c3725' | 'c3745' | 'c7200'

/** IOS image: a name in the images directory, or a path */
export type Image2 = string

/** A machine that runs nodes, in the fleet */
export type Compute = {
  compute_id: string
  name: string
  /** `tunnel`: the compute has joined, and is reached through the websocket that it keeps open */
  protocol: 'http' | 'https' | 'tunnel'
  /** For a compute that has joined: its name */
  host: string
  /** For a compute that has joined: 0 */
  port: number
  user: string | null
  connected: boolean
  /** Whether a gateway places new projects there; with false, its current projects stay */
  accepts_projects: boolean
  /** Share of the new projects: the scheduler multiplies the free capacity by it. Default: 1 */
  weight: number
  /** Labels that were given to the compute, such as `site=berlin`, in addition to those that it detects */
  labels: string[]
  cpu_usage_percent: number | null
  memory_usage_percent: number | null
  capabilities: ComputeCapabilities
  /** Since when the compute has not been connected, as far as the service knows (UTC, RFC 3339); absent while connected */
  disconnected_since?: string
  last_error: string | null
}

/** The capabilities that a compute reported */
export type ComputeCapabilities = {
  version: string | null
  /** linux, darwin or win32 */
  platform?: string
  /** Kinds of node that it runs */
  node_types: string[]
  labels?: Labels
}

/** The address of a compute, and its credentials */
export type ComputeCreate = {
  protocol: 'http' | 'https'
  /** Host name or address; not a link-local one */
  host: string
  port: number
  compute_id?: string | null
  name?: string | null
  user?: string | null
  password?: string | null
  accepts_projects?: boolean | null
  weight?: number | null
  labels?: string[] | null
  connected?: boolean | null
  cpu_usage_percent?: number | null
  memory_usage_percent?: number | null
  capabilities?: ComputeCapabilities | null
  disconnected_since?: string | null
  last_error?: string | null
}

/** Changes to a compute; absent or null members stay unchanged. An empty user also removes the password */
export type ComputeUpdate = {
  /** Accepted and ignored */
  compute_id?: unknown
  name?: string | null
  protocol?: 'http' | 'https' | 'tunnel' | null
  host?: string | null
  port?: number | null
  user?: string | null
  password?: string | null
  accepts_projects?: boolean | null
  weight?: number | null
  labels?: string[] | null
  connected?: boolean | null
  cpu_usage_percent?: number | null
  memory_usage_percent?: number | null
  capabilities?: ComputeCapabilities | null
  disconnected_since?: string | null
  last_error?: string | null
}

/** Settings of the appliance VM, a VM with a service that is the compute `vm` */
export type ApplianceVm = {
  /** Whether the VM is started and used as the compute `vm` */
  enable: boolean
  /** The engine of the VM; remote: a registered compute is used instead */
  engine: 'libvirt' | 'virtualbox' | 'remote'
  vmname: string | null
  /** What happens to the VM when it is disabled or the service ends */
  when_exit: 'stop' | 'suspend' | 'keep'
  /** Whether the VM runs without a window on the host */
  headless: boolean
  /** Whether `ram` and `vcpus` apply; false: the VM keeps its own definition */
  allocate_vcpus_ram: boolean
  /** Memory, MB */
  ram: number
  /** Number of processors */
  vcpus: number
  address: string | null
  /** TCP port of the service in the VM */
  port: number
  user: string | null
}

/** Changes to the settings; absent members stay unchanged. null removes vmname, address or user, and leaves other members. A password is removed with its user */
export type ApplianceVmUpdate = {
  enable?: boolean | null
  engine?: 'libvirt' | 'virtualbox' | 'remote' | null
  vmname?: string | null
  when_exit?: 'stop' | 'suspend' | 'keep' | null
  headless?: boolean | null
  allocate_vcpus_ram?: boolean | null
  ram?: number | null
  vcpus?: number | null
  address?: string | null
  port?: number | null
  user?: string | null
  password?: string | null
}

/** An engine of the appliance VM, and the settings that it supports */
export type ApplianceEngine = {
  engine_id: string
  name: string
  /** Description, as HTML */
  description: string
  support_when_exit: boolean
  support_headless: boolean
  support_ram: boolean
}

/** A VM that can be the appliance VM */
export type ApplianceCandidate = {
  vmname: string
}

/** A credential of a client or of a compute */
export type AccessToken = {
  /** The part of the token between its first two "_" */
  token_id: string
  name: string
  role: Role
  purpose: Purpose
  compute_id?: ComputeId
  projects?: Projects
  /** The last four characters of the token, to recognise it */
  last_characters: string
  /** Time in UTC (RFC 3339) */
  created_at: string
  expires_at: string | null
}

/** The rights of a client with the token; has no meaning for a join token */
export type Role = 'read' | 'operate' | 'admin'

/** user: for requests; join: for a compute that joins the fleet, and nothing else */
export type Purpose = 'user' | 'join'

/** The only compute that may join with the token: named at its creation, or the first that used it */
export type ComputeId = string

/** The projects to which the token is limited: ids, names of labs, or prefixes of names such as `class-*`. Absent: all projects */
export type Projects = string[]

/** The owner of the token, and its rights. `role` is required, except for join tokens */
export type AccessTokenCreate = {
  name: string
  role?: 'read' | 'operate' | 'admin' | null
  purpose?: 'user' | 'join' | null
  compute_id?: string | null
  projects?: string[] | null
  expires_in_s?: number | null
}

/** A new token, with its secret */
export type NewAccessToken = {
  /** The part of the token between its first two "_" */
  token_id: string
  name: string
  role: Role
  purpose: Purpose
  compute_id?: ComputeId
  projects?: Projects
  /** The last four characters of the token, to recognise it */
  last_characters: string
  /** Time in UTC (RFC 3339) */
  created_at: string
  expires_at: string | null
  /** The token; it is not shown again */
  token: string
}

/** Credentials: a token, or user and password */
export type SessionCreate = {
  /** A token; or `user` and `password` */
  token?: string
  user?: string
  password?: string
}

/** The client, and the end of its session */
export type Session = {
  /** Name of the token or the user */
  name: string
  /** read: view; operate: run labs and type on consoles; admin: also computes, tokens and the configuration */
  role: 'read' | 'operate' | 'admin'
  /** The organization in which the client acts; absent: `default`, or a service without organizations */
  organization?: string
  expires_at: string | null
}

/** Its projects, computes and tokens are invisible to others */
export type Organization = {
  organization_id: OrganizationId
  name: string
  /** Most projects, labs among them; 0: no limit of its own */
  max_projects: number
  /** Most computes, at most 1000; 0: no limit of its own */
  max_computes: number
  /** Most requests per second of all its credentials together, on a Worker in each isolate; 0: no limit of its own */
  requests_per_s: number
  created_at: string | null
}

/** Id of the organization: 1 to 40 lower-case letters, digits and "-"; it cannot be changed */
export type OrganizationId = string

/** A new organization, by default without limits */
export type OrganizationCreate = {
  organization_id: OrganizationId
  name?: string | null
  max_projects?: number | null
  max_computes?: number | null
  requests_per_s?: number | null
  created_at?: string | null
}

/** Changes of an organization */
export type OrganizationUpdate = {
  name?: string | null
  max_projects?: number | null
  max_computes?: number | null
  requests_per_s?: number | null
  organization_id?: string | null
  created_at?: string | null
}

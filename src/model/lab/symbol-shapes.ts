const arrows = (paths: string): string => `<g fill="none">${paths}</g>`
const box = '<rect x="6" y="20" width="48" height="22" rx="3"/>'
const disc =
  '<ellipse cx="30" cy="40" rx="25" ry="11"/><path d="M5 22v18M55 22v18"/><ellipse cx="30" cy="22" rx="25" ry="11"/>'
const cloud = '<path d="M17 46a11 11 0 0 1-1-22 15 15 0 0 1 28-3 12.500 12.500 0 0 1 1 25z"/>'
const monitor = '<rect x="8" y="10" width="44" height="30" rx="3"/><path d="M22 50h16M30 40v10"/>'

/** The built-in symbols, all our own drawings: the content of an SVG of 60 by 60, without colours. */
export const symbolShapes: Readonly<Record<string, string>> = {
  computer: monitor,
  pc: `${monitor}${arrows('<path d="M15 20l5 5-5 5M24 31h8"/>')}`,
  server:
    '<rect x="14" y="6" width="32" height="48" rx="3"/><path d="M20 16h20M20 24h20M20 32h12"/><circle cx="38" cy="44" r="2"/>',
  machine: `${monitor}${arrows('<circle cx="30" cy="25" r="8"/><path d="M30 17v8l5 4"/>')}`,
  router: `${disc}${arrows('<path d="M18 18l7 3m-7-3l3.500-1.500M42 26l-7-3m7 3l-3.500 1.500M35 18.500l7-3M25 25.500l-7 3"/>')}`,
  switch: `${box}${arrows('<path d="M14 28h14m-4-4l4 4-4 4M46 34H32m4-4l-4 4 4 4"/>')}`,
  multilayer_switch: `<rect x="8" y="8" width="44" height="44" rx="3"/>${arrows('<path d="M16 24h14m-4-4l4 4-4 4M44 36H30m4-4l-4 4 4 4"/>')}`,
  hub: `${box}${arrows('<path d="M14 31h32M20 26l-6 5 6 5M40 26l6 5-6 5"/>')}`,
  firewall:
    '<rect x="8" y="10" width="44" height="40" rx="2"/><path d="M8 20h44M8 30h44M8 40h44M22 10v10M38 10v10M16 20v10M30 20v10M44 20v10M22 30v10M38 30v10M16 40v10M30 40v10M44 40v10"/>',
  cloud,
  nat: `${cloud}${arrows('<path d="M20 36h18m-5-5l5 5-5 5"/>')}`,
  unknown:
    '<rect x="10" y="10" width="40" height="40" rx="4" stroke-dasharray="4 4"/><path fill="none" d="M24 24a6 6 0 1 1 8 6c-2 1-2 2-2 4M30 40v.1"/>',
}

declare module '*.lab.yaml' {
  const example: import('./example-lab.ts').ExampleLab
  export default example
}

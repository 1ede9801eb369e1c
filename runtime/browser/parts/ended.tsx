/** What is left of a lab that is not there any more: the reason, and the way on. */
export const Ended = ({ text }: { text: string }) => (
  <main class="ended">
    <p dir="auto">{text}</p>
    <a class="button" href="#/">
      All labs
    </a>
  </main>
)

/** The form of a server: connections, images, speech, transcription, tools. */
import type { ComponentChildren } from "preact";

/** A form whose values are checked by its own code. The browser fills nothing in: the passwords it knows are for other sites. */
export function ServerForm(
  { label, onSubmit, children }: { label?: string; onSubmit: () => unknown; children: ComponentChildren },
) {
  return (
    <form
      class="form"
      noValidate
      autocomplete="off"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        void onSubmit();
      }}
    >
      {children}
    </form>
  );
}

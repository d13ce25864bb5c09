/** Opens an editor with its screen and saves what is left when the screen goes. */
import { useEffect } from "preact/hooks";
import { useStore } from "../../state/store.ts";
import type { VersionedEditor } from "../../state/documents/versioned_editor.ts";

/** Reads the document and listens to changes of it while the view is shown. */
export function useEditing<Whole, Data extends object>(editor: VersionedEditor<Whole, Data>): void {
  const store = useStore();
  useEffect(() => {
    void editor.open();
    const end = store.listen((event) => editor.onChange(event));
    // The browser asks before it throws away what is not saved; within the page leaving saves.
    const onLeave = (event: Event) => {
      if (!editor.isDirty) return;
      void editor.save();
      event.preventDefault();
    };
    globalThis.addEventListener("beforeunload", onLeave);
    return () => {
      end();
      globalThis.removeEventListener("beforeunload", onLeave);
      void editor.save();
    };
  }, [editor]);
}

/** A drop target for files. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { texts } from "../../texts/texts.ts";

/** Highlights while files are over it. @param props.onFiles Also receives the names of folders, which can't be read. */
export function DropArea(
  { onFiles, title = texts.characters.drop, hint = texts.characters.dropHint, children }: {
    onFiles: (files: File[], folders: string[]) => void;
    title?: string;
    hint?: string;
    children: ComponentChildren;
  },
) {
  const [isOver, setOver] = useState(false);
  // Every child fires enter and leave; the count tells whether the pointer is over the area.
  const depth = useRef(0);
  const enter = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    depth.current++;
    setOver(true);
  };
  const leave = (event: DragEvent) => {
    if (hasFiles(event) && --depth.current <= 0) setOver(false);
  };
  const drop = (event: DragEvent) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth.current = 0;
    setOver(false);
    const items = [...event.dataTransfer?.items ?? []];
    const folders = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);
    const names = new Set(folders.map((entry) => entry!.name));
    // A folder appears among the files as one that can't be read.
    const files = [...event.dataTransfer?.files ?? []].filter(({ name }) => !names.has(name));
    onFiles(files, [...names]);
  };
  return (
    <div
      class="drop-area"
      onDragEnter={enter}
      onDragLeave={leave}
      onDragOver={(event) => hasFiles(event) && event.preventDefault()}
      onDrop={drop}
    >
      {children}
      {isOver && (
        <div class="drop-note">
          <strong>{title}</strong>
          <span>{hint}</span>
        </div>
      )}
    </div>
  );
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

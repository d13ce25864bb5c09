/** Overlays and lists. */
import { useState } from "preact/hooks";
import { Button, IconButton } from "../components/Button.tsx";
import { Icon } from "../components/Icon.tsx";
import { TextField } from "../components/forms/Field.tsx";
import { List, ListRow } from "../components/lists/List.tsx";
import { VirtualList } from "../components/lists/VirtualList.tsx";
import { Dialog, Sheet } from "../components/overlays/Dialog.tsx";
import { Menu } from "../components/overlays/Menu.tsx";
import { Panel } from "../components/overlays/Panel.tsx";
import { ToastView } from "../components/overlays/Toasts.tsx";
import { useStore } from "../state/store.ts";

/** Dialog, sheet, menu, panel, toasts. */
export function OverlaySamples() {
  const { toasts } = useStore();
  const [open, setOpen] = useState<"dialog" | "sheet" | "panel">();
  const [chosen, setChosen] = useState("nothing");
  const close = () => setOpen(undefined);
  return (
    <section>
      <h2>Floating</h2>
      <div class="actions-row">
        <Button onClick={() => setOpen("dialog")}>Dialog</Button>
        <Button onClick={() => setOpen("sheet")}>Sheet</Button>
        <Button onClick={() => setOpen("panel")}>Panel</Button>
        <Button onClick={() => toasts.show("A message")}>Toast</Button>
        <Button onClick={() => toasts.show("It went wrong", { isError: true })}>Error toast</Button>
        <Button onClick={() => toasts.offerUndo("Deleted", "Undo", () => setChosen("undone"), () => setChosen("gone"))}>
          Toast with Undo
        </Button>
        <Menu
          label="Sample menu"
          items={[
            { label: "Rename", icon: "pencil", onSelect: () => setChosen("rename") },
            { label: "Pin", icon: "pin", hint: "P", onSelect: () => setChosen("pin") },
            { label: "A link", icon: "next", href: "#main" },
            { label: "Not now", isDisabled: true },
            "line",
            { label: "By date", isChecked: true, onSelect: () => setChosen("by date") },
            { label: "By name", isChecked: false, onSelect: () => setChosen("by name") },
            "line",
            { label: "Delete", icon: "trash", isDanger: true, onSelect: () => setChosen("delete") },
          ]}
        />
      </div>
      <p class="muted">Chosen: {chosen}</p>
      <div class="actions-row">
        <ToastView toast={{ id: 1, text: "A message", isError: false }} onDismiss={() => {}} />
        <ToastView
          toast={{ id: 2, text: "Chat deleted", isError: false, action: { label: "Undo", run: () => {} } }}
          onDismiss={() => {}}
        />
        <ToastView toast={{ id: 3, text: "It went wrong", isError: true }} onDismiss={() => {}} />
      </div>
      {open === "dialog" && (
        <Dialog
          title="A dialog"
          onClose={close}
          actions={
            <>
              <Button onClick={close}>Cancel</Button>
              <Button kind="primary" onClick={close}>Save</Button>
            </>
          }
        >
          <TextField label="Name" value="" hasFocus onInput={() => {}} />
        </Dialog>
      )}
      {open === "sheet" && (
        <Sheet title="A sheet" onClose={close}>
          <p>What there is to see.</p>
        </Sheet>
      )}
      {open === "panel" && (
        <div class="panel-sample">
          <Panel title="A panel" onClose={close}>
            <p>What belongs to the screen.</p>
          </Panel>
        </div>
      )}
    </section>
  );
}

const MANY = Array.from({ length: 20_000 }, (_, index) => ({ id: `row-${index}`, height: index % 7 === 0 ? 64 : 40 }));

/** Plain and virtual lists. */
export function ListSamples() {
  return (
    <section>
      <h2>Lists</h2>
      <List label="Sample list">
        <ListRow title="Only a title" />
        <ListRow
          title="A link"
          text="With more below it"
          href="#main"
          start={<Icon name="chat" />}
          end={<IconButton icon="trash" label="Delete" />}
        />
        <ListRow
          title="A button, the current one"
          onClick={() => {}}
          isCurrent
          end={<span class="badge">In use</span>}
        />
      </List>
      <h3>20,000 rows</h3>
      <VirtualList
        class="virtual-sample"
        label="Many rows"
        items={MANY}
        keyOf={(item) => item.id}
        heightOf={(item) => item.height}
      >
        {(item) => <a href="#main">{item.id}</a>}
      </VirtualList>
      <h3>500 rows of measured height</h3>
      <VirtualList
        class="virtual-sample"
        label="Measured rows"
        items={MANY.slice(0, 500)}
        keyOf={(item) => item.id}
        heightOf={() => 30}
        isMeasured
      >
        {(item, index) => <a href="#main">{`${item.id} `.repeat(1 + index % 40)}</a>}
      </VirtualList>
    </section>
  );
}

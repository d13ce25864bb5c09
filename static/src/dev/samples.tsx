/** Every component in every state, for the page of components. */
import { useState } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import { Button, IconButton, LinkButton } from "../components/Button.tsx";
import { Icon, ICON_NAMES } from "../components/Icon.tsx";
import { lazy } from "../components/Lazy.tsx";
import { EmptyState, ErrorNote, Notice } from "../components/Notice.tsx";
import { Progress } from "../components/Progress.tsx";
import { Tabs } from "../components/Tabs.tsx";
import { Field, TextField } from "../components/forms/Field.tsx";
import { Select, Slider, Switch } from "../components/forms/inputs.tsx";
import { List, ListRow } from "../components/lists/List.tsx";
import { VirtualList } from "../components/lists/VirtualList.tsx";
import { Dialog, Sheet } from "../components/overlays/Dialog.tsx";
import { Menu } from "../components/overlays/Menu.tsx";
import { Panel } from "../components/overlays/Panel.tsx";
import { ToastView } from "../components/overlays/Toasts.tsx";
import { useStore } from "../state/store.ts";

const Missing = lazy<{ name: string }>(() => new Promise(() => {}));
const Failing = lazy<{ name: string }>(() => Promise.reject(new Error("no such file")));

/** Each kind of button in each state. */
export function ButtonSamples() {
  return (
    <section>
      <h2>Buttons</h2>
      <div class="actions-row">
        <Button kind="primary">Primary</Button>
        <Button>Plain</Button>
        <Button kind="quiet">Quiet</Button>
        <Button icon="search">With an icon</Button>
        <Button isBusy>Busy</Button>
        <Button isDisabled>Disabled</Button>
        <Button kind="primary" isDisabled>Disabled</Button>
        <LinkButton href="#main" icon="plus">A link</LinkButton>
      </div>
      <div class="actions-row">
        <IconButton icon="copy" label="Copy" />
        <IconButton icon="wrap" label="Wrap, pressed" isPressed />
        <IconButton icon="trash" label="Delete, disabled" isDisabled />
        <IconButton icon="send" label="Send" kind="primary" />
        <IconButton icon="send" label="Send, disabled" kind="primary" isDisabled />
      </div>
      <h3>Icons</h3>
      <div class="actions-row">
        {ICON_NAMES.map((name) => (
          <span key={name} title={name}>
            <Icon name={name} />
          </span>
        ))}
      </div>
    </section>
  );
}

/** Each tone of a notice, and failures. */
export function NoticeSamples() {
  const error = new ApiError(502, {
    code: "upstream_error",
    message: `Can't reach the model at "http://127.0.0.1:8080": connection refused`,
    request_id: "01890a5d-ac96-774b-bcce-b302099a8057",
    issues: [{ path: "base_url", message: "Nothing listens there" }],
  });
  return (
    <section>
      <h2>Notices and failures</h2>
      <Notice tone="info" title="Info">Something to know.</Notice>
      <Notice tone="warning" title="Warning">Something to look at.</Notice>
      <Notice tone="danger" title="Danger">Something that went wrong.</Notice>
      <ErrorNote title="The model could not be asked" error={error} onRetry={() => {}}>
        Start the server first.
      </ErrorNote>
    </section>
  );
}

/** Progress, tabs, empty states, lazy components. */
export function ContentSamples() {
  const [tab, setTab] = useState<"one" | "two" | "three">("one");
  return (
    <section>
      <h2>Progress</h2>
      <Progress label="Download" value={0.3} text="12 of 40 MB" />
      <Progress label="Done" value={1} text="40 of 40 MB" />
      <Progress label="Unknown" value={null} text="working" />
      <h2>Tabs</h2>
      <Tabs
        label="Sample tabs"
        tabs={[{ id: "one", title: "One" }, { id: "two", title: "Two" }, { id: "three", title: "Three" }]}
        current={tab}
        onSelect={setTab}
      >
        <p>View {tab}.</p>
      </Tabs>
      <h2>Empty states</h2>
      <EmptyState level={3} title="Nothing here yet" text="A sentence on what goes here.">
        <Button kind="primary">The next step</Button>
      </EmptyState>
      <h2>Parts on demand</h2>
      <Missing name="loading" />
      <Failing name="failed" />
    </section>
  );
}

/** Each control in each state. */
export function FormSamples() {
  const [text, setText] = useState("Some text");
  const [choice, setChoice] = useState<"a" | "b">("a");
  const [isOn, setOn] = useState(true);
  const [value, setValue] = useState(0.7);
  return (
    <section>
      <h2>Fields</h2>
      <div class="form">
        <TextField label="Plain" value={text} onInput={setText} />
        <TextField label="With a hint" value="" placeholder="Placeholder" hint="What belongs here." onInput={setText} />
        <TextField label="With an error" value="bad" error="This is not an address" onInput={setText} />
        <TextField label="Disabled" value="fixed" isDisabled onInput={setText} />
        <TextField label="With suggestions" value={text} list={["alpha", "beta"]} onInput={setText} />
        <TextField label="Code" value="{}" isMono onInput={setText} />
        <TextField label="Several lines" rows={4} value={text} onInput={setText} />
        <Field label="A control of one's own">
          {(describedBy, id) => <input id={id} type="date" aria-describedby={describedBy} />}
        </Field>
        <Select
          label="Choice"
          value={choice}
          options={[{ value: "a", name: "First" }, { value: "b", name: "Second" }]}
          onChange={setChoice}
        />
        <Select
          label="Disabled choice"
          value="a"
          options={[{ value: "a", name: "First" }]}
          isDisabled
          onChange={() => {}}
        />
        <Switch label="Switch" hint="With a hint." isOn={isOn} onChange={setOn} />
        <Switch label="Off" isOn={false} onChange={() => {}} />
        <Switch label="Disabled" isOn isDisabled onChange={() => {}} />
        <Slider
          label="Slider"
          value={value}
          min={0}
          max={2}
          step={0.05}
          format={(number) => number.toFixed(2)}
          onInput={setValue}
          onChange={setValue}
        />
        <Slider label="Disabled slider" value={1} min={0} max={2} isDisabled onChange={() => {}} />
      </div>
    </section>
  );
}

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

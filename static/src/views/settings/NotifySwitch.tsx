/** Whether this browser tells when a reply ends out of sight. The browser is asked once, when this is switched on. */
import { useState } from "preact/hooks";
import { Switch } from "../../components/forms/Switch.tsx";
import { canNotify, isDenied, mayNotify } from "../../state/app/notifications.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Off by default; says why where the browser does not let us. */
export function NotifySwitch() {
  const { device } = useStore();
  const t = texts.general;
  const [isRefused, setRefused] = useState(isDenied());
  const change = async (isOn: boolean) => {
    const isAllowed = isOn && await mayNotify();
    setRefused(isOn && !isAllowed);
    device.isNotifying.value = isAllowed;
  };
  return (
    <Switch
      id="notify"
      label={t.notify}
      hint={!canNotify() ? t.notifyImpossible : isRefused ? t.notifyRefused : t.notifyHint}
      isOn={device.isNotifying.value && !isRefused}
      isDisabled={!canNotify()}
      onChange={(isOn) => void change(isOn)}
    />
  );
}

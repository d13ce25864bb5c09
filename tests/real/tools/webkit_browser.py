#!/usr/bin/python3
"""A bare WebKitGTK browser for WebKitWebDriver: a page of exactly WK_SIZE, a recorder of errors that runs before the page's scripts, mock microphone, answers to permission prompts.

What went wrong on the page is in `window.__errors` (script errors, rejections, violations of the CSP, console.error and warn).
"""
import os

import gi

gi.require_version("Gtk", "3.0")
gi.require_version("WebKit2", "4.1")
from gi.repository import GLib, Gtk, WebKit2  # noqa: E402

WIDTH, HEIGHT = map(int, os.environ.get("WK_SIZE", "390x844").split("x"))
RECORDER = """(() => {
  const found = window.__errors = [];
  const add = (text) => found.push(location.pathname + " " + String(text).slice(0, 600));
  addEventListener("error", (e) => add("ERROR " + (e.message || e.target?.src || e.target?.href) + " " + (e.filename || "") + ":" + e.lineno), true);
  addEventListener("unhandledrejection", (e) => add("REJECTION " + e.reason + " " + (e.reason?.stack ?? "")));
  addEventListener("securitypolicyviolation", (e) => add("CSP " + e.violatedDirective + " " + e.blockedURI));
  for (const kind of ["error", "warn"]) {
    const own = console[kind];
    console[kind] = (...args) => { add(kind + " " + args.map((x) => x?.stack ? x + " " + x.stack : String(x)).join(" ")); own.apply(console, args); };
  }
})();"""

folder = os.environ.get("WK_DATA")
data = WebKit2.WebsiteDataManager(base_data_directory=folder, base_cache_directory=folder + "/cache") if folder else WebKit2.WebsiteDataManager.new_ephemeral()
context = WebKit2.WebContext(website_data_manager=data)
context.set_automation_allowed(True)


def open_view():
    content = WebKit2.UserContentManager()
    content.add_script(WebKit2.UserScript.new(RECORDER, WebKit2.UserContentInjectedFrames.TOP_FRAME, WebKit2.UserScriptInjectionTime.START, None, None))
    view = WebKit2.WebView(web_context=context, user_content_manager=content, is_controlled_by_automation=True)
    settings = view.get_settings()
    for name in ("enable-write-console-messages-to-stdout", "enable-media-stream", "enable-mediasource"):
        settings.set_property(name, True)
    if os.environ.get("WK_UA"):
        settings.set_user_agent(os.environ["WK_UA"])
    if os.environ.get("WK_MOCK"):
        settings.set_property("enable-mock-capture-devices", True)

    def on_permission(_, request):
        (request.allow if os.environ.get("WK_ALLOW") else request.deny)()
        return True

    view.connect("permission-request", on_permission)
    view.connect("web-process-terminated", lambda _, why: print("The page's process ended:", why, flush=True))
    window = Gtk.Window()
    window.set_decorated(False)
    view.set_size_request(WIDTH, HEIGHT)
    window.add(view)
    window.set_default_size(WIDTH, HEIGHT)
    window.move(0, 0)
    view.connect("close", lambda _: window.destroy())
    window.show_all()

    def focus():  # without a window manager nobody else gives the page the keyboard
        if window.get_window():
            window.get_window().focus(0)
        view.grab_focus()
        return False

    GLib.timeout_add(300, focus)
    return view


def on_started(_, session):
    info = WebKit2.ApplicationInfo()
    info.set_name("MiniBrowser")
    info.set_version(WebKit2.get_major_version(), WebKit2.get_minor_version(), WebKit2.get_micro_version())
    session.set_application_info(info)
    session.connect("create-web-view", lambda _: open_view())


context.connect("automation-started", on_started)
Gtk.main()

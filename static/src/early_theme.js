// Shows the theme that was chosen on this device from the first frame on: the page itself is drawn later.
try {
  document.documentElement.dataset.theme = JSON.parse(localStorage.getItem("parlor.device")).theme;
} catch {
  // Nothing was chosen, or the browser refuses to store data.
}

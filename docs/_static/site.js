// Names and focus that the theme leaves out: its search button, its folding entries, and pictures that scroll.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".search-button-field[aria-label]").forEach((button) => button.removeAttribute("aria-label"));
  document.querySelectorAll("li > details > summary").forEach((summary) => {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", `pages of ${summary.closest("li").querySelector("a")?.textContent}`);
  });
  document.querySelectorAll(".fluidnb, .fluidnb div").forEach((box) => {
    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible") box.tabIndex = 0;
  });
});
